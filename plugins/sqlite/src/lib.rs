//! Tools for an SQLite database. Names and arguments are those of the reference SQLite server, so that prompts and settings written for it
//! keep working.

#![expect(clippy::disallowed_methods, reason = "its file is what it is for; the sandbox says which")]

use kept::Place;
use wharf_sdk::{
    Content, Failure, Message, PromptResult, ReadOutcome, ResourceEntry, ResourceTemplate, Resources, Role, bindings,
    prelude::*, schemars, serde, serde_json,
};

mod database;
mod guard;
mod log;
mod memo;
mod statement;

use database::{Database, PATIENCE};

wants! {
    roots = { access = "read-write", why = "the database in one of them; with read alone, it can look and change nothing" },
    settings = [{ key = "db_path", type = "string", why = "the database; sqlite_mcp_server.db in the open folder if not set" }],
}

const PLACE: Place = Place { plugin: "sqlite", what: "the database", setting: "db_path", name: "sqlite_mcp_server.db" };
const URI: &str = "memo://insights";

/// The plugin's table in the operator's config file.
#[derive(Deserialize, Default)]
#[serde(crate = "serde", default, deny_unknown_fields)]
struct Config {
    db_path: Option<String>,
}

macro_rules! arguments {
    ($($name:ident { $(#[$meta:meta])* $field:ident })*) => {$(
        #[derive(Deserialize, JsonSchema)]
        #[serde(crate = "serde")]
        #[schemars(crate = "schemars")]
        struct $name { $(#[$meta])* $field: String }
    )*};
}

arguments! {
    Read {
        /// SELECT SQL query to execute
        query
    }
    Write {
        /// SQL query to execute
        query
    }
    Create {
        /// CREATE TABLE SQL statement
        query
    }
    Describe {
        /// Name of the table to describe
        table_name
    }
    Insight {
        /// Business insight discovered from data analysis
        insight
    }
}

fn database() -> Result<Database> {
    let config: Config = serde_json::from_str(&host::config())
        .map_err(|error| Error::failed(format!("the config of the plugin sqlite is wrong: {error}")))?;
    let open = host::directories();
    let file = PLACE.file(config.db_path.as_deref().filter(|path| !path.is_empty()), &open)?;
    // If open folders are nested, the access to the innermost one applies.
    let around = open.iter().filter(|directory| file.starts_with(&directory.path));
    let writable = around.max_by_key(|directory| directory.path.len()).is_some_and(|directory| directory.writable);
    Ok(Database { file, writable, patience: PATIENCE })
}

struct Sqlite;

#[tools]
impl Sqlite {
    /// Execute a SELECT query on the SQLite database
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn read_query(args: Read) -> Result<String> {
        database()?.read(|connection| statement::read(connection, &args.query))
    }

    /// Execute an INSERT, UPDATE, or DELETE query on the SQLite database
    #[tool(read_only = false, destructive, idempotent = false, open_world = false)]
    fn write_query(args: Write) -> Result<String> {
        database()?.write(|connection| statement::write(connection, &args.query))
    }

    /// Create a new table in the SQLite database
    #[tool(read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn create_table(args: Create) -> Result<String> {
        database()?.write(|connection| statement::create(connection, &args.query))
    }

    /// List all tables in the SQLite database
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn list_tables() -> Result<String> {
        database()?.read(statement::tables)
    }

    /// Get the schema information for a specific table
    #[tool(read_only, destructive = false, idempotent, open_world = false)]
    fn describe_table(args: Describe) -> Result<String> {
        database()?.read(|connection| statement::columns(connection, &args.table_name))
    }

    /// Add a business insight to the memo
    #[tool(read_only = false, destructive = false, idempotent = false, open_world = false)]
    fn append_insight(args: Insight) -> Result<&'static str> {
        memo::add(&database()?.file, args.insight)?;
        host::resource_updated(URI);
        Ok("Insight added to memo")
    }
}

/// Implemented by hand, because the name of the resource has spaces.
impl Resources for Sqlite {
    fn list_resources() -> Result<Vec<ResourceEntry>, Failure> {
        Ok(vec![ResourceEntry {
            uri: URI.to_owned(),
            name: "Business Insights Memo".to_owned(),
            description: Some("A living document of discovered business insights".to_owned()),
            mime_type: Some("text/plain".to_owned()),
            more: None,
        }])
    }

    fn list_templates() -> Result<Vec<ResourceTemplate>, Failure> {
        Ok(Vec::new())
    }

    fn read_resource(uri: String, _: wharf_sdk::Context) -> Result<ReadOutcome, Failure> {
        let text = || match uri.as_str() {
            URI => memo::text(&database()?.file),
            _ => Err(Error::resource_not_found(&uri)),
        };
        match text() {
            Ok(text) => Ok(ReadOutcome::Text(text)),
            Err(error) => error.into_parts().map(ReadOutcome::Ask),
        }
    }
}

bindings::resources::export_resources!(Sqlite with_types_in bindings::resources);

#[prompts]
impl Sqlite {
    /// A prompt to seed the database with initial data and demonstrate what you can do with an SQLite MCP Server
    #[prompt(name = "mcp-demo")]
    fn demo(
        /// Topic to seed the database with initial data
        topic: String,
    ) -> Result<PromptResult> {
        let text = format!(
            "Show me what you can do with an SQLite database, on the topic: {topic}.\n\n\
             1. Invent a question of a business in this field that its data can answer, and tell it in a few sentences.\n\
             2. Say that you set up the data, and do it without asking: two or three tables with create_table, and ten to fifteen varied \
             rows for each with write_query.\n\
             3. Tell what there is now, and offer a few questions about it to choose from. Wait for my choice.\n\
             4. Answer it with read_query, say what it means, and keep what is worth it with append_insight. Offer one more question.\n\
             5. Put the results together in an overview, with tables or charts.\n\
             6. End with the answer to the business's question, and tell that the resource memo://insights holds what was found out."
        );
        let messages = vec![Message { role: Role::User, content: Content::Text(text) }];
        Ok(PromptResult { description: Some(format!("Demo template for {topic}")), messages, more: None })
    }
}
