//! Icons of what plugins offer. Clients fetch icons by themselves, from URLs that a plugin could make of anything that it knows: so data
//! would leave that the plugin itself may send nowhere. Only icons that are embedded as `data:` URLs are passed on.

use serde_json::Value;
use wharf_protocol::object::Object;

fn is_embedded(icon: &Value) -> bool {
    let source = icon.get("src").and_then(Value::as_str);
    source.is_some_and(|source| source.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")))
}

/// Removes all icons that would have to be fetched from the members of an entry. Returns how many.
pub(super) fn keep_embedded(more: &mut Object) -> Result<usize, String> {
    let Some(icons) = more.get_mut("icons") else { return Ok(0) };
    let icons = icons.as_array_mut().ok_or("`icons` in `more` must be an array")?;
    let before = icons.len();
    icons.retain(is_embedded);
    let kept = icons.len();
    if kept == 0 {
        more.remove("icons");
    }
    Ok(before - kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_icons_that_are_embedded_are_passed_on() {
        let data = json!({ "src": "data:image/png;base64,AA==" });
        let capital = json!({ "src": "DATA:image/png;base64,AA==" });
        let fetched = json!({ "src": "https://example.com/what-it-knows.png" });
        for (icons, expected) in [
            (json!([data, fetched, capital]), Ok(Some(json!([data, capital])))),
            (json!([fetched]), Ok(None)),
            (json!([{ "src": "http://example.com/i.png" }, { "src": "file:///etc/passwd" }, {}, "data:", 7]), Ok(None)),
            (json!([]), Ok(None)),
            (json!("https://example.com/i.png"), Err(())),
        ] {
            let mut more = Object::new();
            more.insert("icons".into(), icons.clone());
            let left_out = keep_embedded(&mut more);
            let kept = more.get("icons").and_then(Value::as_array).map_or(0, Vec::len);
            let all = icons.as_array().map_or(0, Vec::len);
            assert!(left_out.as_ref().is_ok_and(|left_out| left_out + kept == all) || left_out.is_err(), "{icons}");
            assert_eq!(left_out.map(|_| more.get("icons").cloned()).map_err(drop), expected, "{icons}");
        }
    }
}
