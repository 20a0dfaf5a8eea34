//! The proof, at the start of a real test, that nothing beyond loopback can be reached.
//!
//! What lives here: reading what the kernel says of this process's network namespace. What never does: a connection
//! attempt.
//!
//! `/sys/class/net` is not used: it shows the namespace of whoever mounted `/sys`, not ours.

use std::fs;
use std::io;

/// Devices that some kernels put into every new namespace. They are down and without address or route.
const INERT_DEVICES: &[&str] = &[
    "tunl0", "sit0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip6gre0", "ip_vti0", "ip6_vti0",
    "teql0",
];

/// Why the network is not isolated, or cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsolationError {
    /// There is a device that may lead out.
    #[error(
        "the network device {0:?} may lead out of this machine: run through `cargo xtask test real`"
    )]
    Device(String),
    /// There is a route that leads out.
    #[error("there is a route over {0:?}: run through `cargo xtask test real`")]
    Route(String),
    /// Loopback is not up.
    #[error("loopback is not up (`ip link set lo up`): run through `cargo xtask test real`")]
    LoopbackDown,
    /// The kernel's tables could not be read; nothing is proved.
    #[error("{path} could not be read: {reason}; run through `cargo xtask test real`")]
    Unreadable {
        /// The file.
        path: &'static str,
        /// The reason.
        reason: String,
    },
}

/// Succeeds only if loopback is the only way to send anything, and is up.
///
/// # Errors
/// As soon as one of the kernel's tables shows another way, lacks loopback, or cannot be read.
pub fn require() -> Result<(), IsolationError> {
    judge(
        &read("/proc/self/net/dev")?,
        &read("/proc/self/net/route")?,
        &read_if_there("/proc/self/net/ipv6_route")?,
        &read("/proc/self/net/fib_trie")?,
    )
}

fn read(path: &'static str) -> Result<String, IsolationError> {
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

/// A kernel without IPv6 has no such table, and then no such route.
fn read_if_there(path: &'static str) -> Result<String, IsolationError> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(|error| unreadable(path, &error)),
    }
}

fn unreadable(path: &'static str, error: &io::Error) -> IsolationError {
    IsolationError::Unreadable {
        path,
        reason: error.to_string(),
    }
}

fn judge(
    devices: &str,
    routes: &str,
    routes_v6: &str,
    addresses: &str,
) -> Result<(), IsolationError> {
    // Two lines of heading, then `name: counters`.
    let names = devices
        .lines()
        .skip(2)
        .filter_map(|line| line.split_once(':').map(|(name, _)| name.trim()));
    for name in names {
        if name != "lo" && !INERT_DEVICES.contains(&name) {
            return Err(IsolationError::Device(name.to_owned()));
        }
    }
    let over_v4 = routes
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    let over_v6 = routes_v6
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    if let Some(name) = over_v4.chain(over_v6).find(|name| *name != "lo") {
        return Err(IsolationError::Route(name.to_owned()));
    }
    let loopback_up = addresses
        .lines()
        .any(|line| line.trim_start() == "|-- 127.0.0.1");
    if loopback_up {
        Ok(())
    } else {
        Err(IsolationError::LoopbackDown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "Inter-|   Receive\n face |bytes\n";
    const ROUTE_HEADING: &str = "Iface\tDestination\tGateway\n";
    const UP: &str =
        "Main:\n  +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.1\n           /32 host LOCAL\n";

    #[test]
    fn only_loopback_that_is_up_passes() {
        let lo = format!("{HEADING}    lo: 0 0\n");
        let tunnel = format!("{lo} tunl0: 0 0\n");
        let outside = format!("{lo}  eth0: 1 1\n");
        let over_tunnel = format!("{ROUTE_HEADING}tunl0\t00000000\t00\n");
        let v6 = "00000000000000000000000000000001 80 0 00 0 0 0 0 80200001       lo\n";
        let v6_out = "fe80 40 0 00 0 0 0 0 1     sit0\n";
        for (devices, routes, routes_v6, addresses, expected) in [
            (lo.as_str(), ROUTE_HEADING, v6, UP, Ok(())),
            (&tunnel, ROUTE_HEADING, "", UP, Ok(())),
            (
                &outside,
                ROUTE_HEADING,
                "",
                UP,
                Err(IsolationError::Device("eth0".to_owned())),
            ),
            (
                &tunnel,
                &over_tunnel,
                "",
                UP,
                Err(IsolationError::Route("tunl0".to_owned())),
            ),
            (
                &tunnel,
                ROUTE_HEADING,
                v6_out,
                UP,
                Err(IsolationError::Route("sit0".to_owned())),
            ),
            (
                &lo,
                ROUTE_HEADING,
                "",
                "Main:\n",
                Err(IsolationError::LoopbackDown),
            ),
        ] {
            assert_eq!(judge(devices, routes, routes_v6, addresses), expected);
        }
    }

    #[test]
    fn a_refusal_says_how_to_run_instead() {
        let refusal = IsolationError::Device("eth0".to_owned()).to_string();
        assert!(refusal.contains("cargo xtask test real"), "{refusal}");
    }
}
