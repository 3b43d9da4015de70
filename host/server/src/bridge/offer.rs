//! What plugins offer: checked, cleaned, and under the names they are published as.

use serde_json::Value;
use wharf_protocol::{
    Object,
    header::{Mirrored, mirrored},
    model as mcp,
};
use wharf_sandbox::{Listing, model as wit};

use super::{PLUGIN_META, read_more};
use crate::{
    config::PluginConfig,
    schema::Schema,
    template::{Template, has_scheme},
    text::clean,
};

/// What a plugin offers, checked and under the names it is published as.
#[derive(Debug, Default)]
pub struct Offer {
    pub tools: Vec<OfferedTool>,
    pub resources: Vec<mcp::Resource>,
    pub templates: Vec<OfferedTemplate>,
    pub prompts: Vec<OfferedPrompt>,
}

#[derive(Debug)]
pub struct OfferedTool {
    pub published: mcp::Tool,
    pub own_name: String,
    pub input: Schema,
    pub output: Option<Schema>,
    pub needs: wit::Abilities,
    /// Arguments that HTTP clients mirror in headers.
    pub mirrored: Vec<Mirrored>,
    /// Questions come before the task, not inside it.
    pub ask_before_task: bool,
}

#[derive(Debug)]
pub struct OfferedTemplate {
    pub published: mcp::ResourceTemplate,
    pub template: Template,
}

#[derive(Debug)]
pub struct OfferedPrompt {
    pub published: mcp::Prompt,
    pub own_name: String,
}

impl Offer {
    /// What clients see of the tools, of the resources with their templates, and of the prompts; equal if they see no
    /// difference.
    pub fn published(&self) -> [String; 3] {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.published).collect();
        let templates: Vec<_> = self.templates.iter().map(|template| &template.published).collect();
        let prompts: Vec<_> = self.prompts.iter().map(|prompt| &prompt.published).collect();
        [format!("{tools:?}"), format!("{:?}{templates:?}", self.resources), format!("{prompts:?}")]
    }
}

/// Checks a listing. The error says which entry is wrong and how.
pub fn offer(config: &PluginConfig, listing: Listing) -> Result<Offer, String> {
    let allowed = |patterns: &Option<Vec<crate::config::Pattern>>, name: &str| {
        patterns.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    };
    let mut offer = Offer::default();
    for tool in listing.tools {
        if allowed(&config.tools, &tool.name) {
            let name = tool.name.clone();
            offer.tools.push(offered_tool(config, tool).map_err(|error| format!("tool `{}`: {error}", clean(&name)))?);
        }
    }
    for entry in listing.resources {
        if withheld(config, &entry.uri) {
            continue;
        }
        let uri = entry.uri.clone();
        let resource =
            offered_resource(config, entry).map_err(|error| format!("resource `{}`: {error}", clean(&uri)))?;
        offer.resources.push(resource);
    }
    for template in listing.templates {
        if withheld(config, &template.uri_template) {
            continue;
        }
        let text = template.uri_template.clone();
        let template =
            offered_template(config, template).map_err(|error| format!("template `{}`: {error}", clean(&text)))?;
        offer.templates.push(template);
    }
    for prompt in listing.prompts {
        if allowed(&config.prompts, &prompt.name) {
            let name = prompt.name.clone();
            let prompt =
                offered_prompt(config, prompt).map_err(|error| format!("prompt `{}`: {error}", clean(&name)))?;
            offer.prompts.push(prompt);
        }
    }
    unique("tool", offer.tools.iter().map(|tool| tool.published.name.as_str()))?;
    unique("resource", offer.resources.iter().map(|resource| resource.uri.as_str()))?;
    unique("template", offer.templates.iter().map(|template| template.published.uri_template.as_str()))?;
    unique("prompt", offer.prompts.iter().map(|prompt| prompt.published.name.as_str()))?;
    Ok(offer)
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.array_windows().find(|[one, other]| one == other) {
        Some([name, _]) => Err(format!("the {kind} `{}` is listed twice", clean(name))),
        None => Ok(()),
    }
}

fn published_name(config: &PluginConfig, own: &str) -> Result<String, String> {
    let name = format!("{}{own}", config.prefix);
    let valid = !own.is_empty()
        && name.len() <= 128
        && own.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.'));
    if valid {
        Ok(name)
    } else {
        Err("a name has 1 to 128 letters, digits, `_`, `-` and `.`, its prefix included".into())
    }
}

/// Reads a `more` member and adds which plugin the entry comes from. `own`: members that have a field of their own.
fn entry_more(config: &PluginConfig, more: Option<&String>, own: &[&str]) -> Result<Object, String> {
    let mut more = read_more(more, own)?;
    let meta = more.entry("_meta").or_insert_with(|| Value::Object(Object::new()));
    let meta = meta.as_object_mut().ok_or("`_meta` in `more` must be an object")?;
    meta.insert(PLUGIN_META.into(), config.id.clone().into());
    if let Some(icons) = more.get("icons") {
        check_icons(icons)?;
    }
    if let Some(title) = more.get_mut("title") {
        *title = Value::String(clean(title.as_str().ok_or("`title` in `more` must be a string")?));
    }
    Ok(more)
}

/// Clients fetch icons, so they come from the web or stand in the text itself.
fn check_icons(icons: &Value) -> Result<(), String> {
    let icons = icons.as_array().ok_or("`icons` in `more` must be an array")?;
    let fits = |icon: &Value| {
        let source = icon.get("src").and_then(Value::as_str).unwrap_or_default();
        source.starts_with("https://") || source.starts_with("data:")
    };
    if icons.iter().all(fits) { Ok(()) } else { Err("the `src` of an icon begins with https:// or data:".into()) }
}

fn offered_tool(config: &PluginConfig, tool: wit::Tool) -> Result<OfferedTool, String> {
    let name = published_name(config, &tool.name)?;
    let input = Schema::compile(&tool.input_schema, true).map_err(|error| format!("input schema: {error}"))?;
    let details = tool.details;
    let more = details.as_ref().and_then(|details| details.more.as_ref());
    let more = entry_more(
        config,
        more,
        &["name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"],
    )?;
    let output = match details.as_ref().and_then(|details| details.output_schema.as_deref()) {
        Some(text) => Some(Schema::compile(text, false).map_err(|error| format!("output schema: {error}"))?),
        None => None,
    };
    let input_schema: Value = serde_json::from_str(input.text.get()).unwrap_or_default();
    let mirrored = mirrored(&input_schema).map_err(|error| format!("input schema: {error}"))?;
    if let Some(nested) = mirrored.iter().find(|one| one.path.len() > 1) {
        let path = nested.path.join(".");
        tracing::warn!(
            plugin = config.id,
            "the tool {name} mirrors the nested argument {} in a header, which not all clients do",
            crate::text::escaped(&path)
        );
    }
    let task = match details.as_ref().map(|details| details.task) {
        Some(wit::TaskSupport::Required) if config.tasks.is_none() => {
            return Err("it can only run as a task; `extensions` in [protocol] leaves tasks out".into());
        }
        Some(wit::TaskSupport::Required) => mcp::TaskSupport::Required,
        Some(wit::TaskSupport::Optional) if config.tasks.is_some() => mcp::TaskSupport::Optional,
        _ => mcp::TaskSupport::Forbidden,
    };
    let annotations = details.as_ref().and_then(|details| details.hints.as_ref()).map(|hints| {
        let mut annotations = Object::new();
        for (key, value) in [
            ("readOnlyHint", hints.read_only),
            ("destructiveHint", hints.destructive),
            ("idempotentHint", hints.idempotent),
            ("openWorldHint", hints.open_world),
        ] {
            if let Some(value) = value {
                annotations.insert(key.into(), value.into());
            }
        }
        annotations
    });
    let published = mcp::Tool {
        name,
        title: details.as_ref().and_then(|details| details.title.as_deref()).map(clean),
        description: clean(&tool.description),
        input_schema: input.text.clone(),
        output_schema: output.as_ref().map(|schema| schema.text.clone()),
        annotations,
        task,
        more,
    };
    let ask_before_task = details.as_ref().is_some_and(|details| details.ask_before_task);
    let needs = details.map_or(wit::Abilities::empty(), |details| details.needs);
    Ok(OfferedTool { published, own_name: tool.name, input, output, needs, mirrored, ask_before_task })
}

fn check_uri(uri: &str) -> Result<(), String> {
    if !has_scheme(uri) || uri.chars().any(|character| character.is_control() || character == ' ') {
        return Err("it is not an absolute URI".into());
    }
    Ok(())
}

/// Files are not published for a plugin that could not read one; the rest of what it offers is.
fn withheld(config: &PluginConfig, uri: &str) -> bool {
    let files = uri.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let withheld = files && !config.grants.any_directory();
    if withheld {
        tracing::warn!(
            plugin = config.id,
            "{} is not published, because no directory is granted; `roots` or `dirs` in [plugins.{}.grants] grant one",
            crate::text::escaped(uri),
            config.id
        );
    }
    withheld
}

fn offered_resource(config: &PluginConfig, entry: wit::ResourceEntry) -> Result<mcp::Resource, String> {
    check_uri(&entry.uri)?;
    if entry.name.is_empty() {
        return Err("it has no name".into());
    }
    let more = entry_more(config, entry.more.as_ref(), &["uri", "name", "description", "mimeType"])?;
    Ok(mcp::Resource {
        uri: entry.uri,
        name: clean(&entry.name),
        description: entry.description.as_deref().map(clean),
        mime_type: entry.mime_type.as_deref().map(clean),
        more,
    })
}

fn offered_template(config: &PluginConfig, entry: wit::ResourceTemplate) -> Result<OfferedTemplate, String> {
    let template = Template::compile(&entry.uri_template)?;
    check_uri(&entry.uri_template)?;
    if entry.name.is_empty() {
        return Err("it has no name".into());
    }
    let more = entry_more(config, entry.more.as_ref(), &["uriTemplate", "name", "description", "mimeType"])?;
    let published = mcp::ResourceTemplate {
        uri_template: entry.uri_template,
        name: clean(&entry.name),
        description: entry.description.as_deref().map(clean),
        mime_type: entry.mime_type.as_deref().map(clean),
        more,
    };
    Ok(OfferedTemplate { published, template })
}

fn offered_prompt(config: &PluginConfig, prompt: wit::Prompt) -> Result<OfferedPrompt, String> {
    let name = published_name(config, &prompt.name)?;
    unique("argument", prompt.params.iter().map(|argument| argument.name.as_str()))?;
    let more = entry_more(config, prompt.more.as_ref(), &["name", "description", "arguments"])?;
    let arguments = prompt.params.into_iter().map(|argument| mcp::PromptArgument {
        name: clean(&argument.name),
        description: argument.description.as_deref().map(clean),
        required: argument.required,
    });
    let published = mcp::Prompt {
        name,
        description: prompt.description.as_deref().map(clean),
        arguments: arguments.collect(),
        more,
    };
    Ok(OfferedPrompt { published, own_name: prompt.name })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn icons_are_fetched_safely_or_not_at_all() {
        for (icons, fits) in [
            (json!([{ "src": "https://example.com/i.png" }, { "src": "data:image/png;base64,AA==" }]), true),
            (json!([]), true),
            (json!([{ "src": "http://example.com/i.png" }]), false),
            (json!([{ "src": "file:///etc/passwd" }]), false),
            (json!([{}]), false),
            (json!("https://example.com/i.png"), false),
        ] {
            assert_eq!(check_icons(&icons).is_ok(), fits, "{icons}");
        }
    }
}
