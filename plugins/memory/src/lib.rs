//! A memory for a model: a graph of entities and relations in a file. Names, arguments and answers are those of the reference memory
//! server, so that prompts, settings and files written for it keep working.

#![expect(clippy::disallowed_methods, reason = "this plugin works on a file; the sandbox limits which")]

use std::path::PathBuf;

use kept::Place;
use serde_json::json;
use wharf_sdk::{
    Failure, ReadOutcome, ResourceEntry, ResourceTemplate, Resources, bindings, prelude::*, schemars, serde,
};

mod graph;
mod store;

use graph::{Entity, Graph, Relation};
use store::PATIENCE;

wharf_sdk::instructions!(
    "The memory is a graph that outlasts the session: look with search_nodes before you ask the user, and store what is worth remembering."
);

wants! {
    env = [{ name = "MEMORY_FILE_PATH", why = "the file to remember in, as the reference server takes it" }],
    settings = [{ key = "file", type = "string", why = "the file to remember in; memory.jsonl in the open folder if not set" }],
}

const PLACE: Place = Place { plugin: "memory", what: "the memory", setting: "file", name: "memory.jsonl" };
const URI: &str = "memory://knowledge-graph";
/// The maximum length of an answer in bytes. It must stay within the default limit of 4 MiB.
const MAX_BYTES: usize = (4 << 20) - (64 << 10);

/// The plugin's table in the operator's config file.
#[derive(Deserialize, Default)]
#[serde(crate = "serde", default, deny_unknown_fields)]
struct Config {
    file: Option<String>,
}

macro_rules! arguments {
    ($($name:ident { $($(#[$meta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        #[derive(Deserialize, JsonSchema)]
        #[serde(crate = "serde", rename_all = "camelCase")]
        #[schemars(crate = "schemars")]
        struct $name { $($(#[$meta])* $field: $ty,)* }
    )*};
}

arguments! {
    CreateEntities { entities: Vec<Entity>, }
    CreateRelations { relations: Vec<Relation>, }
    AddObservations { observations: Vec<Added>, }
    Added {
        /// The name of the entity to add the observations to
        entity_name: String,
        /// An array of observation contents to add
        contents: Vec<String>,
    }
    DeleteEntities {
        /// An array of entity names to delete
        entity_names: Vec<String>,
    }
    DeleteObservations { deletions: Vec<Deleted>, }
    Deleted {
        /// The name of the entity containing the observations
        entity_name: String,
        /// An array of observations to delete
        observations: Vec<String>,
    }
    DeleteRelations {
        /// An array of relations to delete
        relations: Vec<Relation>,
    }
    Search {
        /// The search query to match against entity names, types, and observation content
        query: String,
    }
    Open {
        /// An array of entity names to retrieve
        names: Vec<String>,
    }
}

/// What was added to an entity.
#[derive(Serialize)]
#[serde(crate = "serde", rename_all = "camelCase")]
struct Observed {
    entity_name: String,
    added_observations: Vec<String>,
}

/// Returns an answer as the reference server gives it as text. It is not sent a second time as structured content: some clients would then
/// show a model only that.
fn told(answer: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(answer)?;
    if text.len() > MAX_BYTES {
        return Err(Error::failed(
            "the result is too large for one answer; ask for less, with search_nodes or open_nodes",
        ));
    }
    Ok(text)
}

fn file() -> Result<PathBuf> {
    let config: Config = serde_json::from_str(&host::config())
        .map_err(|error| Error::failed(format!("the config of the plugin memory is wrong: {error}")))?;
    let given = config.file.or_else(|| std::env::var("MEMORY_FILE_PATH").ok()).filter(|path| !path.is_empty());
    kept::target(&PLACE.file(given.as_deref(), &host::directories())?)
}

fn read() -> Result<Graph> {
    store::read(&file()?)
}

fn change<T>(change: impl FnOnce(&mut Graph) -> Result<T>) -> Result<T> {
    let (done, changed) = store::change(&file()?, PATIENCE, change)?;
    if changed {
        host::resource_updated(URI);
    }
    Ok(done)
}

fn deleted(message: &'static str, delete: impl FnOnce(&mut Graph)) -> Result<&'static str> {
    change(|graph| {
        delete(graph);
        Ok(())
    })?;
    Ok(message)
}

struct Memory;

#[tools]
impl Memory {
    /// Create multiple new entities in the knowledge graph
    #[tool(title = "Create Entities", read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn create_entities(args: CreateEntities) -> Result<String> {
        let entities = change(|graph| Ok(graph.create_entities(args.entities)))?;
        told(&entities)
    }

    /// Create multiple new relations between entities in the knowledge graph. Relations should be in active voice
    #[tool(title = "Create Relations", read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn create_relations(args: CreateRelations) -> Result<String> {
        let relations = change(|graph| Ok(graph.create_relations(args.relations)))?;
        told(&relations)
    }

    /// Add new observations to existing entities in the knowledge graph
    #[tool(title = "Add Observations", read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn add_observations(args: AddObservations) -> Result<String> {
        let results = change(|graph| {
            let add = |Added { entity_name, contents }| {
                let added_observations = graph.add_observations(&entity_name, contents)?;
                Ok(Observed { entity_name, added_observations })
            };
            args.observations.into_iter().map(add).collect::<Result<Vec<_>>>()
        })?;
        told(&results)
    }

    /// Delete multiple entities and their associated relations from the knowledge graph
    #[tool(title = "Delete Entities", read_only = false, destructive, idempotent, open_world = false)]
    fn delete_entities(args: DeleteEntities) -> Result<&'static str> {
        deleted("Entities deleted successfully", |graph| graph.delete_entities(&args.entity_names))
    }

    /// Delete specific observations from entities in the knowledge graph
    #[tool(title = "Delete Observations", read_only = false, destructive, idempotent, open_world = false)]
    fn delete_observations(args: DeleteObservations) -> Result<&'static str> {
        deleted("Observations deleted successfully", |graph| {
            for Deleted { entity_name, observations } in args.deletions {
                graph.delete_observations(&entity_name, &observations);
            }
        })
    }

    /// Delete multiple relations from the knowledge graph
    #[tool(title = "Delete Relations", read_only = false, destructive, idempotent, open_world = false)]
    fn delete_relations(args: DeleteRelations) -> Result<&'static str> {
        deleted("Relations deleted successfully", |graph| graph.delete_relations(&args.relations))
    }

    /// Read the entire knowledge graph
    #[tool(title = "Read Graph", read_only, destructive = false, idempotent, open_world = false)]
    fn read_graph() -> Result<String> {
        told(&read()?.whole())
    }

    /// Search for nodes in the knowledge graph based on a query
    #[tool(title = "Search Nodes", read_only, destructive = false, idempotent, open_world = false)]
    fn search_nodes(args: Search) -> Result<String> {
        told(&read()?.search(&args.query))
    }

    /// Open specific nodes in the knowledge graph by their names
    #[tool(title = "Open Nodes", read_only, destructive = false, idempotent, open_world = false)]
    fn open_nodes(args: Open) -> Result<String> {
        told(&read()?.open(&args.names))
    }
}

/// Implemented by hand, because the macro cannot set the resource's title.
impl Resources for Memory {
    fn list_resources() -> Result<Vec<ResourceEntry>, Failure> {
        Ok(vec![ResourceEntry {
            uri: URI.to_owned(),
            name: "knowledge-graph".to_owned(),
            description: Some("The full knowledge graph with all entities and relations".to_owned()),
            mime_type: Some("application/json".to_owned()),
            more: Some(json!({ "title": "Knowledge Graph" }).to_string()),
        }])
    }

    fn list_templates() -> Result<Vec<ResourceTemplate>, Failure> {
        Ok(Vec::new())
    }

    fn read_resource(uri: String, _: wharf_sdk::Context) -> Result<ReadOutcome, Failure> {
        let text = || match uri.as_str() {
            URI => Ok(serde_json::to_string_pretty(&read()?.whole())?),
            _ => Err(Error::resource_not_found(&uri)),
        };
        match text() {
            Ok(text) => Ok(ReadOutcome::Text(text)),
            Err(error) => error.into_parts().map(ReadOutcome::Ask),
        }
    }
}

bindings::resources::export_resources!(Memory with_types_in bindings::resources);
