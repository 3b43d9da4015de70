//! Icons of what plugins offer. Clients fetch icons by themselves, from URLs that a plugin could make of anything that it knows: so data
//! would leave that the plugin itself may send nowhere. Only icons that are embedded as `data:` URLs are passed on.

use serde_json::Value;
use wharf_protocol::object::Object;
use wharf_sandbox::Listing;

fn is_embedded(icon: &Value) -> bool {
    let source = icon.get("src").and_then(Value::as_str);
    source.is_some_and(|source| source.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")))
}

/// Removes all icons that would have to be fetched from the members of an entry.
pub(super) fn keep_embedded(more: &mut Object) -> Result<(), String> {
    let Some(icons) = more.get_mut("icons") else { return Ok(()) };
    let icons = icons.as_array_mut().ok_or("`icons` in `more` must be an array")?;
    icons.retain(is_embedded);
    if icons.is_empty() {
        more.remove("icons");
    }
    Ok(())
}

/// Returns how many icons of a listing are not passed on.
pub fn left_out(listing: &Listing) -> usize {
    let tools = listing.tools.iter().map(|tool| tool.details.as_ref()?.more.as_ref());
    let resources = listing.resources.iter().map(|resource| resource.more.as_ref());
    let templates = listing.templates.iter().map(|template| template.more.as_ref());
    let prompts = listing.prompts.iter().map(|prompt| prompt.more.as_ref());
    let all = tools.chain(resources).chain(templates).chain(prompts).flatten().filter(|more| more.contains("icons"));
    all.filter_map(|more| {
        let more: Value = serde_json::from_str(more).ok()?;
        Some(more.get("icons")?.as_array()?.iter().filter(|icon| !is_embedded(icon)).count())
    })
    .sum()
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
            let kept = keep_embedded(&mut more).map(|()| more.get("icons").cloned());
            assert_eq!(kept.map_err(drop), expected, "{icons}");
        }
    }
}
