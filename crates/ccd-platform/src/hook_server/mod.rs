//! The hook server: Claude's hook calls answered on a thread of their own, whatever the host process does.
//!
//! What lives here: one thread with its own runtime, serving one router on a loopback TCP port and on a unix socket;
//! records go to the inbox in order of arrival, after the answer where the answer needs nothing. What never does: a
//! decision about a permission (it denies at the deadline and at the end), or field names of one version.

mod deny;
mod guard;
mod listen;
mod payload;
mod serve;
mod shared;

use std::{
    fs::Permissions,
    future::IntoFuture as _,
    io,
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::{fs::PermissionsExt as _, net::UnixListener},
    },
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

use ccd_model::{ids::Launch, observation::LostPart, time::Mono};
use ccd_ports::{
    clock::Clock,
    error::{PortError, PortErrorKind},
    inbox::Inbox,
    raw::Raw,
    session::{HOOK_SOCKET_NAME, HookAddress, HookSpec, Hooks},
};
use tokio::{runtime::Runtime, sync::mpsc::UnboundedReceiver};

use self::{
    listen::{Bounded, Peer},
    shared::{Handle, Record, Shared},
};

/// At the stop, answers on their way are waited for this long, milliseconds.
const STOP_WAIT_MS: u64 = 1_000;

/// A running hook server. Dropping it stops it.
pub struct HookServer {
    /// Where it listens.
    pub address: HookAddress,
    shared: Arc<Shared>,
    sockets: Option<Sockets>,
    thread: Option<JoinHandle<()>>,
}

/// Duplicates of the listening sockets; the thread has its own.
struct Sockets {
    tcp: TcpListener,
    unix: UnixListener,
    path: PathBuf,
}

/// Starts a hook server on `127.0.0.1` and on [`HOOK_SOCKET_NAME`] in the runtime directory (mode 0600).
///
/// # Errors
/// `DirUnusable` if the socket cannot be made in the runtime directory, `Internal` if there is no port or no thread.
pub fn start(
    spec: HookSpec,
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
) -> Result<HookServer, PortError> {
    let sockets = Sockets::open(&spec.runtime_dir)?;
    let port = sockets
        .tcp
        .local_addr()
        .map_err(internal("the hook port is unknown"))?
        .port();
    let address = HookAddress {
        url: format!("http://127.0.0.1:{port}"),
        socket: sockets.path.clone(),
    };
    let (shared, records) = Shared::new(spec, clock);
    let shared = Arc::new(shared);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(internal("no runtime for the hook server"))?;
    let server = sockets
        .serve(&runtime, &shared)
        .map_err(internal("the hook sockets failed"))?;
    let serving = Serving {
        runtime,
        server,
        records,
        launch,
        inbox,
        shared: Arc::clone(&shared),
    };
    let thread = std::thread::Builder::new()
        .name("ccd-hooks".to_owned())
        .spawn(move || serving.run())
        .map_err(internal("no thread for the hook server"))?;
    Ok(HookServer {
        address,
        shared,
        sockets: Some(sockets),
        thread: Some(thread),
    })
}

impl HookServer {
    /// The listening sockets, TCP first; none after [`HookServer::stop`].
    #[must_use]
    pub fn listener_fds(&self) -> Vec<BorrowedFd<'_>> {
        let sockets = self.sockets.iter();
        sockets
            .flat_map(|sockets| [sockets.tcp.as_fd(), sockets.unix.as_fd()])
            .collect()
    }

    /// A handle for the session loop.
    #[must_use]
    pub fn handle(&self) -> Box<dyn Hooks> {
        Box::new(Handle(Arc::clone(&self.shared)))
    }

    /// Denies everything held, closes the sockets and ends the thread. All records are in the inbox when it returns.
    /// Does nothing the second time.
    pub fn stop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported as a loss.
            let _ = thread.join();
        }
        if let Some(sockets) = self.sockets.take() {
            sockets.remove();
        }
    }
}

impl Drop for HookServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The serving of both listeners; it ends only at the stop.
type Server = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

impl Sockets {
    fn open(runtime_dir: &Path) -> Result<Self, PortError> {
        let path = runtime_dir.join(HOOK_SOCKET_NAME);
        let unix = UnixListener::bind(&path).and_then(|unix| {
            std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            unix.set_nonblocking(true)?;
            Ok(unix)
        });
        let unix = unix.map_err(|error| {
            let message = format!("the hook socket {} cannot be made: {error}", path.display());
            PortError::new(PortErrorKind::DirUnusable, message)
        })?;
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|tcp| {
            tcp.set_nonblocking(true)?;
            Ok(tcp)
        });
        let tcp = tcp.map_err(internal("no loopback port for the hook server"))?;
        Ok(Self { tcp, unix, path })
    }

    fn serve(&self, runtime: &Runtime, shared: &Arc<Shared>) -> io::Result<Server> {
        let _inside = runtime.enter();
        let tcp = tokio::net::TcpListener::from_std(self.tcp.try_clone()?)?;
        let unix = tokio::net::UnixListener::from_std(self.unix.try_clone()?)?;
        let app = serve::router(Arc::clone(shared)).into_make_service_with_connect_info::<Peer>();
        let unix_app =
            serve::router(Arc::clone(shared)).into_make_service_with_connect_info::<Peer>();
        let stop = |shared: Arc<Shared>| async move { shared.stopped().await };
        let tcp = axum::serve(Bounded::new(tcp, Arc::clone(shared)), app)
            .with_graceful_shutdown(stop(Arc::clone(shared)));
        let unix = axum::serve(Bounded::new(unix, Arc::clone(shared)), unix_app)
            .with_graceful_shutdown(stop(Arc::clone(shared)));
        Ok(Box::pin(async move {
            let (tcp, unix) = tokio::join!(tcp.into_future(), unix.into_future());
            if let Err(error) = tcp.and(unix) {
                tracing::error!(%error, "the hook server ended");
            }
        }))
    }

    /// Removes the socket file, if it is still a socket.
    fn remove(self) {
        use std::os::unix::fs::FileTypeExt as _;
        let is_socket = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_socket {
            // The supervisor removes the whole directory in any case.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Everything that the thread owns.
struct Serving {
    runtime: Runtime,
    server: Server,
    records: UnboundedReceiver<(Mono, Record)>,
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    shared: Arc<Shared>,
}

impl Serving {
    fn run(self) {
        let (shared, inbox, launch) = (
            Arc::clone(&self.shared),
            Arc::clone(&self.inbox),
            self.launch,
        );
        let ended = catch_unwind(AssertUnwindSafe(|| self.serve()));
        if ended.is_err() || !shared.is_stopping() {
            let lost = Raw::Lost {
                part: LostPart::HookServer,
            };
            inbox.push(launch, shared.clock.now(), lost);
        }
    }

    fn serve(mut self) {
        let (shared, clock) = (Arc::clone(&self.shared), Arc::clone(&self.shared.clock));
        self.runtime.block_on(async {
            let publish = async {
                while let Some((at, record)) = self.records.recv().await {
                    self.inbox.push(self.launch, at, record.into_raw());
                }
            };
            // The server itself ends early at a stop, while answers are on their way: its end is no sign.
            let mut server = self.server;
            let end = async {
                tokio::select! {
                    () = shared.stopped() => {}
                    () = &mut server => {}
                    // The loss must be told at once: calls go unanswered.
                    () = shared.failed() => return,
                }
                tokio::select! {
                    () = shared.all_answered() => {}
                    () = clock.sleep_until(clock.now().after(STOP_WAIT_MS)) => {}
                }
            };
            tokio::select! {
                () = publish => {}
                () = end => {}
            }
        });
        // Ends the connections that are left; what they recorded last is still in the queue.
        drop(self.runtime);
        while let Ok((at, record)) = self.records.try_recv() {
            self.inbox.push(self.launch, at, record.into_raw());
        }
    }
}

fn internal(what: &'static str) -> impl Fn(io::Error) -> PortError {
    move |error| PortError::new(PortErrorKind::Internal, format!("{what}: {error}"))
}
