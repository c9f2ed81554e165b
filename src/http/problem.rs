//! Errors as clients see them: a status and plain text, of which the first line says it. Never HTML.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpResponse, ResponseError};

use crate::fetch::FetchError;
use crate::render::{ErrorCode, RenderError};

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Problem {
    status: StatusCode,
    text: String,
}

impl Problem {
    /// With this status and text.
    #[must_use]
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// The client's mistake: 400.
    #[must_use]
    pub fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<RenderError> for Problem {
    fn from(error: RenderError) -> Self {
        let status = match error.code() {
            ErrorCode::BadTarget => StatusCode::BAD_REQUEST,
            ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::BackendsFailed => StatusCode::BAD_GATEWAY,
            ErrorCode::Deadline => StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::Busy => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.text())
    }
}

impl From<FetchError> for Problem {
    fn from(error: FetchError) -> Self {
        let status = match &error {
            FetchError::BadQuery { .. } => StatusCode::BAD_REQUEST,
            FetchError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            e if e.is_timeout() => StatusCode::GATEWAY_TIMEOUT,
            FetchError::AllFailed { .. } | FetchError::TooFewAvailable { .. } => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, error.to_string())
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        // Texts repeat what the client sent. No client shall read it as HTML, whatever it thinks of the content type;
        // the look-alikes keep carets in their place.
        let text = self.text.replace('<', "‹").replace('>', "›");
        let mut response = HttpResponse::build(self.status).body(format!("{text}\n"));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            // Requests that hold much memory are done within seconds.
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
