//! `/tags…`: which tags and values there are, and which series have them; and, where a store lets clients, changing that.
//!
//! Answers and errors are JSON: `{"error": …}`.

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use super::answer::{Json, accepted, integer, marked, resource, scope};
use super::{App, Params, Problem};
use crate::backend::{BackendError, TagLimits};
use crate::clock::Now;
use crate::series::{TagPattern, TagQuery};

/// How many completions are answered to a request that does not say.
const COMPLETIONS: usize = 100;

/// Adds the routes.
pub(super) fn routes(service: &mut web::ServiceConfig) {
    let get = [Method::GET, Method::HEAD];
    let both = [Method::GET, Method::HEAD, Method::POST];
    let post = [Method::POST];
    service
        .service(resource(&["/tags"], &get, list))
        .service(resource(&["/tags/findSeries"], &both, find_series))
        .service(resource(&["/tags/autoComplete/tags"], &both, complete_tags))
        .service(resource(&["/tags/autoComplete/values"], &both, complete_values))
        .service(resource(&["/tags/tagSeries"], &post, tag_series))
        .service(resource(&["/tags/tagMultiSeries"], &post, tag_multi_series))
        .service(resource(&["/tags/delSeries"], &post, del_series))
        .service(resource(&["/tags/{tag}"], &get, values));
}

/// A request to one of these endpoints.
struct Ask {
    http: HttpRequest,
    params: Params,
    app: web::Data<App>,
}

/// What is answered, and which backends failed.
type Answered = Result<(Value, Vec<BackendError>), Problem>;

impl Ask {
    fn new(http: HttpRequest, body: &[u8], app: web::Data<App>) -> Self {
        Self { params: Params::read(http.query_string(), body), http, app }
    }

    fn answer(&self, answered: Answered) -> HttpResponse {
        let form = Json::of_tags(&self.params);
        match answered {
            Ok((value, failures)) => marked(form.answer(&value), &failures),
            Err(problem) => form.error(&problem),
        }
    }

    fn expressions(&self) -> Vec<String> {
        self.params.all("expr").map(str::to_owned).collect()
    }

    /// A parameter that says something.
    fn text(&self, name: &str) -> Option<String> {
        self.params.get(name).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// The number of entries wanted; negative is any number.
    fn limit(&self, unsaid: Option<usize>) -> Result<Option<usize>, Problem> {
        Ok(integer(&self.params, "limit")?.map_or(unsaid, |limit| usize::try_from(limit).ok()))
    }

    /// What narrows a listing.
    fn filtered(&self) -> Result<TagLimits, Problem> {
        let filter = self.text("filter");
        if let Some(filter) = &filter {
            TagPattern::new(filter).map_err(|e| Problem::bad_request(e.to_string()))?;
        }
        Ok(TagLimits { prefix: None, filter, limit: self.limit(None)? })
    }

    /// What narrows a completion.
    fn narrowed(&self, prefix: &str) -> Result<TagLimits, Problem> {
        let limit = self.limit(Some(COMPLETIONS))?;
        Ok(TagLimits { prefix: self.text(prefix), filter: None, limit })
    }

    /// The series that a change is about.
    fn paths(&self) -> Result<Vec<&str>, Problem> {
        let paths: Vec<&str> = self.params.all("path").collect();
        if paths.is_empty() { Err(Problem::bad_request("no path specified")) } else { Ok(paths) }
    }

    async fn list(&self) -> Answered {
        let limits = self.filtered()?;
        let found = self.app.federation().tags(&limits, &scope(&self.http, &self.app, Now::read())).await?;
        let (tags, failures) = accepted(found, &self.app)?;
        Ok((tags.into_iter().map(|tag| json!({"tag": tag})).collect(), failures))
    }

    async fn values(&self, tag: &str) -> Answered {
        let limits = self.filtered()?;
        let found = self.app.federation().tag_values(tag, &limits, &scope(&self.http, &self.app, Now::read())).await?;
        let (values, failures) = accepted(found, &self.app)?;
        let entry = |(value, count)| json!({"value": value, "count": count});
        let described =
            values.map(|values| json!({"tag": tag, "values": values.into_iter().map(entry).collect::<Vec<_>>()}));
        Ok((described.unwrap_or_default(), failures))
    }

    async fn find_series(&self) -> Answered {
        let expressions = self.expressions();
        if expressions.is_empty() {
            return Err(Problem::bad_request("no tag expressions specified"));
        }
        understood(&expressions)?;
        let scope = scope(&self.http, &self.app, Now::read());
        let found = self.app.federation().find_series(&expressions, &scope).await?;
        let (names, failures) = accepted(found, &self.app)?;
        Ok((names.into(), failures))
    }

    async fn complete_tags(&self) -> Answered {
        let (expressions, limits) = (self.expressions(), self.narrowed("tagPrefix")?);
        if !expressions.is_empty() {
            understood(&expressions)?;
        }
        let scope = scope(&self.http, &self.app, Now::read());
        let found = self.app.federation().complete_tags(&expressions, &limits, &scope).await?;
        let (tags, failures) = accepted(found, &self.app)?;
        Ok((tags.into(), failures))
    }

    async fn complete_values(&self) -> Answered {
        let tag = self.text("tag").ok_or_else(|| Problem::bad_request("no tag specified"))?;
        let (expressions, limits) = (self.expressions(), self.narrowed("valuePrefix")?);
        if !expressions.is_empty() {
            // The tag itself must be there.
            let all: Vec<String> = expressions.iter().cloned().chain([format!("{tag}!=")]).collect();
            understood(&all)?;
        }
        let scope = scope(&self.http, &self.app, Now::read());
        let found = self.app.federation().complete_values(&expressions, &tag, &limits, &scope).await?;
        let (values, failures) = accepted(found, &self.app)?;
        Ok((values.into(), failures))
    }

    /// Adds series and answers their canonical names.
    async fn add(&self, paths: &[&str]) -> Result<Vec<String>, Problem> {
        let scope = scope(&self.http, &self.app, Now::read());
        let mut names = Vec::with_capacity(paths.len());
        for path in paths {
            let added = self.app.federation().tag_series(path, &scope).await.ok_or_else(nothing_to_change)?;
            names.push(added.map_err(|e| not_changed(&e))?);
        }
        Ok(names)
    }

    async fn tag_series(&self) -> Answered {
        let path = self.text("path").ok_or_else(|| Problem::bad_request("no path specified"))?;
        let mut names = self.add(&[&path]).await?;
        Ok((names.pop().into(), Vec::new()))
    }

    async fn tag_multi_series(&self) -> Answered {
        Ok((self.add(&self.paths()?).await?.into(), Vec::new()))
    }

    async fn del_series(&self) -> Answered {
        let scope = scope(&self.http, &self.app, Now::read());
        for path in self.paths()? {
            let deleted = self.app.federation().del_series(path, &scope).await.ok_or_else(nothing_to_change)?;
            deleted.map_err(|e| not_changed(&e))?;
        }
        Ok((true.into(), Vec::new()))
    }
}

/// Refuses expressions that no backend would understand: not all of them say so, and there may be none.
fn understood(expressions: &[String]) -> Result<(), Problem> {
    TagQuery::new(expressions).map(|_| ()).map_err(|e| Problem::bad_request(e.to_string()))
}

fn not_changed(error: &BackendError) -> Problem {
    let status = match error {
        BackendError::BadQuery { .. } => StatusCode::BAD_REQUEST,
        _ => StatusCode::BAD_GATEWAY,
    };
    Problem::new(status, error.to_string())
}

fn nothing_to_change() -> Problem {
    Problem::bad_request("no backend here has a tag index that can be changed; tell the server that has the series")
}

async fn list(http: HttpRequest, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, b"", app);
    ask.answer(ask.list().await)
}

async fn values(tag: web::Path<String>, http: HttpRequest, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, b"", app);
    ask.answer(ask.values(&tag).await)
}

async fn find_series(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, &body, app);
    ask.answer(ask.find_series().await)
}

async fn complete_tags(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, &body, app);
    ask.answer(ask.complete_tags().await)
}

async fn complete_values(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, &body, app);
    ask.answer(ask.complete_values().await)
}

async fn tag_series(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, &body, app);
    ask.answer(ask.tag_series().await)
}

async fn tag_multi_series(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, &body, app);
    ask.answer(ask.tag_multi_series().await)
}

async fn del_series(http: HttpRequest, body: web::Bytes, app: web::Data<App>) -> HttpResponse {
    let ask = Ask::new(http, &body, app);
    ask.answer(ask.del_series().await)
}
