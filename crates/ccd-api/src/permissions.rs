//! Who answers permission requests. Everything fails closed: no valid answer is a deny.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use ccd_runtime::model;
use ccd_types::{PermissionDecision, PermissionRequest};
use model::{
    kernel::{BoxFut, Decide, PermissionRequest as InternalRequest},
    permission::{Decision, Policy},
};

use crate::map_state;

/// A boxed future of a handler.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Decides permission requests. Closures that return a future implement it.
///
/// Handlers run outside the kernel thread. A panic, a dropped future or a missed deadline is a deny.
pub trait PermissionHandler: Send + Sync + 'static {
    /// Answers one request.
    fn decide(&self, request: PermissionRequest) -> BoxFuture<PermissionDecision>;
}

impl<F, Fut> PermissionHandler for F
where
    F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = PermissionDecision> + Send + 'static,
{
    fn decide(&self, request: PermissionRequest) -> BoxFuture<PermissionDecision> {
        Box::pin(self(request))
    }
}

/// Who answers permission requests. There is no default: a caller has to choose.
#[derive(Clone)]
#[non_exhaustive]
pub enum Permissions {
    /// Every request is denied.
    Deny,
    /// Every unambiguous request is allowed; deny rules still hold.
    DangerouslyAllowAll,
    /// A handler decides.
    Ask(Arc<dyn PermissionHandler>),
}

impl Permissions {
    /// Lets a closure decide.
    pub fn ask<F, Fut>(decide: F) -> Self
    where
        F: Fn(PermissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = PermissionDecision> + Send + 'static,
    {
        Self::handler(decide)
    }

    /// Lets `handler` decide.
    pub fn handler(handler: impl PermissionHandler) -> Self {
        Self::Ask(Arc::new(handler))
    }

    pub(crate) const fn policy(&self) -> Policy {
        match self {
            Self::Deny => Policy::Deny,
            Self::DangerouslyAllowAll => Policy::DangerouslyAllowAll,
            Self::Ask(_) => Policy::Ask,
        }
    }

    pub(crate) fn decider(&self) -> Option<Arc<dyn Decide>> {
        match self {
            Self::Ask(handler) => Some(Arc::new(Adapter(Arc::clone(handler)))),
            Self::Deny | Self::DangerouslyAllowAll => None,
        }
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "Deny",
            Self::DangerouslyAllowAll => "DangerouslyAllowAll",
            Self::Ask(_) => "Ask(..)",
        })
    }
}

struct Adapter(Arc<dyn PermissionHandler>);

impl Decide for Adapter {
    fn decide(&self, request: InternalRequest) -> BoxFut<Decision> {
        let answer = self.0.decide(map_state::permission_request(&request));
        Box::pin(async move { map_state::internal_decision(&answer.await) })
    }
}
