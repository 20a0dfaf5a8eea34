//! What every clock promises.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use ccd_model::time::Mono;
use ccd_platform::clock::BootClock;
use ccd_ports::clock::Clock;
use ccd_testing::fakes::clock::FakeClock;

/// The suite. `pass` lets at least so many milliseconds pass.
async fn clock_contract(clock: Arc<dyn Clock>, pass: impl Fn(u64)) {
    let (mono, wall) = (clock.now(), clock.wall());
    clock.sleep_until(mono).await;
    clock.sleep_until(Mono(0)).await;

    // Sleepers wake in the order of their times, wherever they were made.
    let (order, mut woken) = tokio::sync::mpsc::unbounded_channel();
    let from = clock.now();
    let sleepers = [40_u64, 10, 25].map(|ms| {
        let (sleep, order) = (clock.sleep_until(from.after(ms)), order.clone());
        let clock = Arc::clone(&clock);
        tokio::spawn(async move {
            sleep.await;
            assert!(clock.now() >= from.after(ms));
            order.send(ms).unwrap();
        })
    });
    tokio::task::yield_now().await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        pass(20);
        seen.push(woken.recv().await.unwrap());
    }
    assert_eq!(seen, [10, 25, 40]);
    for sleeper in sleepers {
        sleeper.await.unwrap();
    }

    // A dropped wait is cancelled; time only goes forward.
    drop(clock.sleep_until(clock.now().after(1_000_000)));
    assert!(clock.now() >= from.after(40));
    assert!(clock.now() > mono);
    assert!(clock.wall() > wall);
}

#[tokio::test]
async fn the_fake_clock_keeps_the_contract() {
    let clock = FakeClock::new();
    clock_contract(clock.port(), |ms| clock.advance(ms)).await;
}

#[tokio::test]
async fn the_real_clock_keeps_the_contract() {
    clock_contract(Arc::new(BootClock::new()), |_| {}).await;
}
