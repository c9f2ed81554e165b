//! A server in process, and requests to it.

use std::rc::Rc;
use std::sync::Arc;

use actix_web::http::Method;
use actix_web::test::{self, TestRequest};
use actix_web::{middleware, web};
use futures::future::LocalBoxFuture;
use plumbago::backend::Backend;
use plumbago::config::Config;
use plumbago::fetch::{Group, GroupKind};
use plumbago::http::{App, outer, routes};
use serde_json::Value;

use super::dataset;
use super::judge::HttpAnswer;

/// A server in process.
pub struct Server {
    /// What it works on.
    pub app: web::Data<App>,
    ask: Box<dyn Fn(TestRequest) -> LocalBoxFuture<'static, HttpAnswer>>,
}

impl Server {
    /// Over these backends, each a shard.
    pub async fn over(config: Config, backends: Vec<Arc<dyn Backend>>) -> Self {
        let group = Group::new("test", GroupKind::Shards, backends);
        Self::of(App::with_groups(config, vec![group]).expect("an application")).await
    }

    /// Of this application.
    pub async fn of(app: App) -> Self {
        let app = web::Data::new(app);
        let service = actix_web::App::new().wrap(middleware::from_fn(outer)).configure(routes(app.clone()));
        let service = Rc::new(test::init_service(service).await);
        let ask = Box::new(move |request: TestRequest| -> LocalBoxFuture<'static, HttpAnswer> {
            let service = service.clone();
            Box::pin(async move {
                let response = test::call_service(&*service, request.to_request()).await;
                let status = response.status().as_u16();
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                let headers =
                    response.headers().iter().map(|(n, v)| (n.as_str().to_owned(), text(v.as_bytes()))).collect();
                HttpAnswer { status, headers, body: test::read_body(response).await.to_vec() }
            })
        });
        Self { app, ask }
    }

    /// Over the data set of the recordings.
    pub async fn recorded() -> Self {
        Self::over(Config::default(), vec![Arc::new(dataset::store())]).await
    }

    pub async fn ask(&self, request: TestRequest) -> HttpAnswer {
        (self.ask)(request).await
    }

    pub async fn get(&self, uri: &str) -> HttpAnswer {
        self.ask(TestRequest::get().uri(uri)).await
    }

    pub async fn post(&self, uri: &str, body: &str) -> HttpAnswer {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask(TestRequest::post().uri(uri).insert_header(form).set_payload(body.to_owned())).await
    }

    /// The request of a recorded case.
    pub async fn replay(&self, case: &Value) -> HttpAnswer {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for pair in case["params"].as_array().expect("a list of parameters") {
            query.append_pair(pair[0].as_str().expect("a name"), pair[1].as_str().expect("a value"));
        }
        let query = query.finish();
        let method = case["method"].as_str().expect("a method");
        let endpoint = case["endpoint"].as_str().expect("an endpoint");
        let mut request = TestRequest::default().method(Method::from_bytes(method.as_bytes()).expect("a method"));
        for (name, value) in case["headers"].as_object().into_iter().flatten() {
            request = request.insert_header((name.as_str(), value.as_str().expect("a text")));
        }
        if method == "POST" {
            let form = ("Content-Type", "application/x-www-form-urlencoded");
            let mut beside = form_urlencoded::Serializer::new(String::new());
            for pair in case["query"].as_array().into_iter().flatten() {
                beside.append_pair(pair[0].as_str().expect("a name"), pair[1].as_str().expect("a value"));
            }
            let uri = format!("{endpoint}?{}", beside.finish());
            return self.ask(request.uri(&uri).insert_header(form).set_payload(query)).await;
        }
        self.ask(request.uri(&format!("{endpoint}?{query}"))).await
    }
}
