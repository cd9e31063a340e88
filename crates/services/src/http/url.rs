//! URLs as the experiment file writes them: `http://HOST[:PORT]/PATH` or `/PATH`.

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// `HOST[:PORT]`; `None`: the workload's own server.
    pub authority: Option<String>,
    /// Path with its query, never empty.
    pub path: String,
}

pub fn parse(text: &str) -> Result<Url, String> {
    // A line end in a URL would be a second request.
    if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(format!(
            "the URL `{text}` has a space or a control character"
        ));
    }
    let text = text.split('#').next().unwrap_or_default();
    if text.starts_with('/') {
        return Ok(Url {
            authority: None,
            path: text.to_owned(),
        });
    }
    let rest = text.strip_prefix("http://").ok_or_else(|| {
        format!("the URL `{text}` is not http://HOST:PORT/PATH; there is no TLS here")
    })?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() || authority.contains('@') {
        return Err(format!("the URL `{text}` has no plain host"));
    }
    Ok(Url {
        authority: Some(authority.to_owned()),
        path: match path {
            path if path.starts_with('/') => path.to_owned(),
            query => format!("/{query}"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<String>, String) {
        let url = parse(text).unwrap();
        (url.authority, url.path)
    }

    #[test]
    fn host_port_path_and_query_are_told_apart() {
        let of = |authority: &str, path: &str| (Some(authority.to_owned()), path.to_owned());
        assert_eq!(parts("http://a:81/b/c?d=e#f"), of("a:81", "/b/c?d=e"));
        assert_eq!(parts("http://[::1]:81"), of("[::1]:81", "/"));
        assert_eq!(parts("http://a?q"), of("a", "/?q"));
        assert_eq!(parts("/only/path"), (None, "/only/path".to_owned()));
    }

    #[test]
    fn what_would_be_another_request_or_protocol_is_refused() {
        for wrong in [
            "https://a/",
            "a/b",
            "http:///b",
            "http://u@h/",
            "/a b",
            "/a\r\nX: y",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
