//! Parameters of a request: the query string and the form in the body, merged.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;

use super::Problem;

/// Parameters in order: those of the query string, then those of the body. Where one value is wanted the last counts,
/// so the body wins, as in graphite-web.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Reads both. A body is read as a form also when it is not encoded (`query=*.{a,b}`, as Grafana sends it).
    /// Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn read(query: &str, body: &[u8]) -> Self {
        let query = form_urlencoded::parse(query.as_bytes());
        let body = form_urlencoded::parse(body);
        Self(query.chain(body).map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    /// Reads both of a request.
    ///
    /// # Errors
    /// A body that is not a form where parameters may be meant: what it says would be missed without a word.
    pub(super) fn sent(http: &HttpRequest, body: &[u8]) -> Result<Self, Problem> {
        let kind = http.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let other = match kind.as_str() {
            "multipart/form-data" => true,
            // graphite-web does not look at it; whoever sends the parameters in the URL may add one.
            "application/json" => http.query_string().is_empty(),
            _ => false,
        };
        if other && !body.is_empty() {
            let advice = "send the parameters in the URL or as application/x-www-form-urlencoded";
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("a body of {kind} is not read; {advice}"),
            ));
        }
        Ok(Self::read(http.query_string(), body))
    }

    /// The value that counts.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// Whether it is there, with whatever value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All values of `name`, in order; those of `name[]` only where there is no `name`, as in graphite-web.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let plain = self.has(name);
        let is = move |k: &str| if plain { k == name } else { k.strip_suffix("[]") == Some(name) };
        self.0.iter().filter(move |(k, _)| is(k)).map(|(_, v)| v.as_str())
    }

    /// Values of `name[key]` parameters by key, in order.
    pub fn keyed<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let key = move |k: &'a str| k.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']');
        self.0.iter().filter_map(move |(k, v)| Some((key(k)?, v.as_str()))).filter(|(k, _)| !k.is_empty())
    }

    /// All parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_and_body_are_merged() {
        let params = Params::read(
            "from=1&target=a&target%5B%5D=c&&template[x]=1",
            b"from=2&query=*.{a,b}&target=b&t=%41+b&empty=&x[]=1&x[]=2",
        );
        assert_eq!(params.get("from"), Some("2"));
        assert_eq!(params.all("target").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(params.all("x").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(params.get("query"), Some("*.{a,b}"));
        assert_eq!(params.get("t"), Some("A b"));
        assert_eq!(params.keyed("template").collect::<Vec<_>>(), [("x", "1")]);
        assert!(params.has("empty") && !params.has("absent"));
    }
}
