//! Checks and runs a single statement, and formats its result.

use std::sync::{Arc, Mutex};

use rusqlite::{
    Connection, ErrorCode, Statement,
    config::DbConfig,
    hooks::{AuthAction, AuthContext, Authorization},
    types::ValueRef,
};
use wharf_sdk::{Error, Result};

/// The maximum length of an answer in bytes, within the default limit of 4 MiB.
const MAX_BYTES: usize = (4 << 20) - (64 << 10);

/// The pragmas that only return information. The extensions FTS5 and R*Tree use some of them.
const TELLING: [&str; 22] = [
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];
/// The pragmas that set a value in the database file, and are allowed to.
const SETTABLE: [&str; 2] = ["application_id", "user_version"];
/// The pragmas whose argument is a name and which set nothing.
const ABOUT: [&str; 9] = [
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_xinfo",
];

/// The effects of a statement, which SQLite's authorizer reports when the statement is compiled.
#[derive(Default)]
struct Found {
    creates_table: bool,
    /// Whether the statement changes the schema rather than rows.
    changes_schema: bool,
    refused: Option<String>,
}

/// Runs a statement that changes nothing, and returns its rows.
pub fn read(connection: &mut Connection, query: &str) -> Result<String> {
    let found = prepared(connection)?;
    let mut statement = only(connection, query, &found)?;
    if !changes_nothing(&statement) {
        return Err(Error::failed(
            "read_query only reads; write_query changes the database, and create_table adds a table",
        ));
    }
    if statement.column_count() == 0 {
        return Err(Error::failed(
            "there is no statement that answers with rows; each call is a transaction of its own, so none can be begun or ended",
        ));
    }
    rows(&mut statement)
}

/// Runs a statement that changes something, and returns the number of changed rows, or the rows that it returns.
pub fn write(connection: &mut Connection, query: &str) -> Result<String> {
    let found = prepared(connection)?;
    let mut statement = only(connection, query, &found)?;
    if changes_nothing(&statement) {
        return Err(Error::failed("this changes nothing; read_query is for that"));
    }
    if statement.column_count() > 0 {
        drop(statement);
        return returning(connection, query);
    }
    run(&mut statement, &found)?;
    drop(statement);
    let changed = if found.lock().is_ok_and(|found| found.changes_schema) { 0 } else { connection.changes() };
    Ok(format!("[{{\"affected_rows\":{changed}}}]"))
}

/// Returns the rows of a change with RETURNING. SQLite makes all changes before the first row, so if the rows cannot be returned, the
/// changes are rolled back.
fn returning(connection: &mut Connection, query: &str) -> Result<String> {
    // The authorizer refuses these statements in queries.
    let own = |connection: &mut Connection, statement: &str| {
        let open = connection.authorizer(None::<fn(AuthContext) -> Authorization>);
        open.and_then(|()| connection.execute_batch(statement)).map_err(|error| said(&error))
    };
    own(connection, "BEGIN IMMEDIATE")?;
    let found = prepared(connection)?;
    let told = only(connection, query, &found).and_then(|mut statement| rows(&mut statement));
    match told {
        Ok(_) => own(connection, "COMMIT")?,
        // SQLite may have rolled back already.
        Err(_) => own(connection, "ROLLBACK").unwrap_or_default(),
    }
    told
}

/// Runs a CREATE TABLE statement.
pub fn create(connection: &mut Connection, query: &str) -> Result<String> {
    let found = prepared(connection)?;
    let mut statement = only(connection, query, &found)?;
    if !found.lock().is_ok_and(|found| found.creates_table) {
        return Err(Error::failed("create_table takes a CREATE TABLE statement only; write_query is for others"));
    }
    run(&mut statement, &found)?;
    Ok("Table created successfully".to_owned())
}

/// Returns the names of all tables.
pub fn tables(connection: &mut Connection) -> Result<String> {
    rows(&mut connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").map_err(|error| said(&error))?)
}

/// Returns the columns of a table.
pub fn columns(connection: &mut Connection, table: &str) -> Result<String> {
    let all = "SELECT cid, name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?1)";
    let mut statement = connection.prepare(all).map_err(|error| said(&error))?;
    statement.raw_bind_parameter(1, table).map_err(|error| said(&error))?;
    let columns = rows(&mut statement)?;
    if columns == "[]" {
        return Err(Error::failed(format!("there is no table {table}; list_tables tells which there are")));
    }
    Ok(columns)
}

/// Prepares a connection for untrusted statements and databases.
fn prepared(connection: &mut Connection) -> Result<Arc<Mutex<Found>>> {
    let found = Arc::new(Mutex::new(Found::default()));
    let seen = Arc::clone(&found);
    let settings = [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        // SQLite's default, which the reference server uses.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false),
    ];
    let set = |(setting, on)| connection.set_db_config(setting, on).map(drop);
    settings
        .into_iter()
        .try_for_each(set)
        .and_then(|()| connection.authorizer(None::<fn(AuthContext) -> Authorization>))
        // There is no folder for temporary files.
        .and_then(|()| connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON"))
        .and_then(|()| connection.authorizer(Some(move |context: AuthContext| judge(&seen, &context))))
        .map_err(|error| said(&error))?;
    Ok(found)
}

fn judge(found: &Mutex<Found>, context: &AuthContext) -> Authorization {
    let Ok(mut found) = found.lock() else { return Authorization::Deny };
    let refused = match &context.action {
        // VACUUM attaches a database without a name.
        AuthAction::Attach { filename } if !filename.is_empty() => {
            "ATTACH: only the one database is accessible".to_owned()
        }
        AuthAction::Function { function_name } if function_name.eq_ignore_ascii_case("load_extension") => {
            "load_extension: extensions cannot be loaded".to_owned()
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is = |list: &[&str]| list.iter().any(|name| name.eq_ignore_ascii_case(pragma_name));
            let may_be = if pragma_value.is_some() { is(&SETTABLE) || is(&ABOUT) } else { is(&TELLING) };
            if may_be {
                return Authorization::Allow;
            }
            format!("PRAGMA {pragma_name}: only pragmas that return information about the database are allowed")
        }
        AuthAction::CreateTable { table_name } => {
            // ANALYZE creates tables too.
            found.creates_table |= !table_name.starts_with("sqlite_");
            found.changes_schema = true;
            return Authorization::Allow;
        }
        AuthAction::Insert { .. }
        | AuthAction::Delete { .. }
        | AuthAction::Update { .. }
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Select
        | AuthAction::Recursive => return Authorization::Allow,
        _ => {
            found.changes_schema = true;
            return Authorization::Allow;
        }
    };
    found.refused = Some(refused);
    Authorization::Deny
}

/// Compiles a query; fails if it is not a single statement that may run.
fn only<'a>(connection: &'a Connection, query: &str, found: &Mutex<Found>) -> Result<Statement<'a>> {
    let statement = connection.prepare(query).map_err(|error| refused(&error, found))?;
    match statement.parameter_count() {
        0 => Ok(statement),
        count => Err(Error::failed(format!(
            "the query has {count} parameters, which this tool cannot bind; write the values into the query"
        ))),
    }
}

/// Whether a statement changes nothing. EXPLAIN does not run the statement that it explains.
fn changes_nothing(statement: &Statement) -> bool {
    statement.readonly() || statement.is_explain() != 0
}

fn run(statement: &mut Statement, found: &Mutex<Found>) -> Result<()> {
    let mut rows = statement.raw_query();
    while rows.next().map_err(|error| refused(&error, found))?.is_some() {}
    Ok(())
}

/// Returns the error for an action that the authorizer refused, or else SQLite's own. Some actions are only authorized when the statement
/// runs.
fn refused(error: &rusqlite::Error, found: &Mutex<Found>) -> Error {
    match found.lock().ok().and_then(|mut found| found.refused.take()) {
        Some(refused) => Error::failed(format!("this server has no {refused}")),
        None => said(error),
    }
}

/// Returns the rows as a JSON list of objects.
fn rows(statement: &mut Statement) -> Result<String> {
    let names = names(statement);
    let mut rows = statement.raw_query();
    let mut text = "[".to_owned();
    let mut count = 0_usize;
    while let Some(row) = rows.next().map_err(|error| said(&error))? {
        text.push_str(if count == 0 { "{" } else { ",\n{" });
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(name);
            add(&mut text, row.get_ref(at).map_err(|error| said(&error))?)?;
            if text.len() > MAX_BYTES {
                return Err(Error::failed(format!(
                    "row {} would make this more than fits into one answer of {} MiB; ask for fewer rows, with LIMIT, or for less of each",
                    count + 1,
                    (MAX_BYTES >> 20) + 1
                )));
            }
        }
        text.push('}');
        count += 1;
    }
    text.push(']');
    Ok(text)
}

/// Returns the names of the columns as JSON keys, made unique.
fn names(statement: &Statement) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for name in statement.column_names() {
        let mut own = name.to_owned();
        let mut number = 0;
        while taken.contains(&own) {
            number += 1;
            own = format!("{name}:{number}");
        }
        taken.push(own);
    }
    taken.iter().map(|name| format!("{}:", serde_json::Value::from(name.as_str()))).collect()
}

fn add(text: &mut String, value: ValueRef) -> Result<()> {
    match value {
        ValueRef::Null => text.push_str("null"),
        ValueRef::Integer(number) => text.push_str(&number.to_string()),
        ValueRef::Real(number) => match serde_json::Number::from_f64(number) {
            Some(number) => text.push_str(&number.to_string()),
            // JSON cannot represent an infinity as a number.
            None => text.push_str(&format!("\"{number}\"")),
        },
        ValueRef::Text(bytes) if bytes.len() <= MAX_BYTES => {
            text.push_str(&serde_json::to_string(&String::from_utf8_lossy(bytes))?);
        }
        ValueRef::Blob(bytes) if bytes.len() <= MAX_BYTES / 2 => {
            text.push_str("\"X'");
            bytes.iter().for_each(|byte| text.push_str(&format!("{byte:02X}")));
            text.push_str("'\"");
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            return Err(Error::failed(format!(
                "a value has {} bytes, more than fits into one answer; ask for a part of it, with substr",
                bytes.len()
            )));
        }
    }
    Ok(())
}

/// Returns an error with SQLite's message, or with one that says what to do if SQLite's does not.
pub fn said(error: &rusqlite::Error) -> Error {
    use rusqlite::Error::{MultipleStatement, SqlInputError, SqliteFailure};
    let words = match error {
        MultipleStatement => "one statement at a time; ask for the others in calls of their own".to_owned(),
        SqliteFailure(code, _) if code.code == ErrorCode::OutOfMemory => {
            "the query needs more memory than this server has; ask for less".to_owned()
        }
        SqliteFailure(code, _) if code.code == ErrorCode::OperationInterrupted => {
            "it took so long that another call may change the database now, and nothing was changed; try again"
                .to_owned()
        }
        SqlInputError { msg, .. } => msg.clone(),
        SqliteFailure(_, Some(words)) => words.clone(),
        other => other.to_string(),
    };
    Error::failed(format!("Database error: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        write(&mut connection, "CREATE TABLE t (a INTEGER PRIMARY KEY, b, c)").unwrap();
        assert_eq!(
            write(&mut connection, "INSERT INTO t (b, c) VALUES ('é\"', 1e20), (X'00fF', 9223372036854775807)")
                .unwrap(),
            r#"[{"affected_rows":2}]"#
        );
        connection
    }

    fn why(done: Result<String>) -> String {
        match done {
            Err(Error::Failed(why)) => why,
            Err(_) => panic!("another error"),
            Ok(done) => panic!("{done}"),
        }
    }

    #[test]
    fn rows_are_json_with_every_column_and_every_value() {
        let query = "SELECT *, a, a, -1e999 AS inf, NULL AS n, CAST(X'61FF' AS TEXT) AS t FROM t";
        assert_eq!(
            read(&mut memory(), query).unwrap(),
            "[{\"a\":1,\"b\":\"é\\\"\",\"c\":1e+20,\"a:1\":1,\"a:2\":1,\"inf\":\"-inf\",\"n\":null,\"t\":\"a\u{fffd}\"},\n\
             {\"a\":2,\"b\":\"X'00FF'\",\"c\":9223372036854775807,\"a:1\":2,\"a:2\":2,\"inf\":\"-inf\",\"n\":null,\"t\":\"a\u{fffd}\"}]"
        );
        let mut answer = columns(&mut memory(), "t").unwrap();
        assert!(answer.contains(r#"{"cid":1,"name":"b","type":"","notnull":0,"dflt_value":null,"pk":0}"#), "{answer}");
        answer = tables(&mut memory()).unwrap();
        assert_eq!(answer, r#"[{"name":"t"}]"#);
        assert!(why(columns(&mut memory(), "t); DROP TABLE t")).contains("there is no table t);"));
    }

    #[test]
    fn each_tool_takes_its_kind_of_statement() {
        let all = |query: &str| [read, write, create].map(|run| run(&mut memory(), query).is_ok());
        for query in [
            "SELECT 1",
            " -- x\n/* y */ WITH x AS (SELECT 1) SELECT * FROM x",
            "VALUES (1)",
            "EXPLAIN DELETE FROM t",
            "PRAGMA user_version",
        ] {
            assert_eq!(all(query), [true, false, false], "{query}");
        }
        for query in [
            "DELETE FROM t",
            "REPLACE INTO t VALUES (1, 2, 3)",
            "WITH x AS (SELECT 7) INSERT INTO t SELECT 7, 7, 7",
            "DROP TABLE t",
            "CREATE INDEX i ON t (b)",
            "ALTER TABLE t RENAME TO u",
            "VACUUM",
            "ANALYZE",
            "PRAGMA user_version = 7",
            "CREATE VIRTUAL TABLE f USING fts5(x)",
        ] {
            assert_eq!(all(query), [false, true, false], "{query}");
        }
        for query in ["CREATE TABLE u AS SELECT * FROM t", "create /**/ table if not exists t (x)"] {
            assert_eq!(all(query), [false, true, true], "{query}");
        }
        for query in [
            "",
            " -- only a comment",
            "BEGIN",
            "COMMIT",
            "ATTACH '/etc/passwd' AS x",
            "DETACH main",
            "VACUUM INTO '/tmp/x'",
            "PRAGMA journal_mode = WAL",
            "PRAGMA writable_schema = 1",
            "PRAGMA temp_store_directory = '/'",
            "SELECT load_extension('x')",
            "SELECT 1; DROP TABLE t",
            "SELECT ?",
            "nonsense",
            "UPDATE sqlite_master SET sql = ''",
        ] {
            assert_eq!(all(query), [false, false, false], "{query}");
        }
    }

    #[test]
    fn answers_tell_what_was_done() {
        let mut connection = memory();
        for (query, answer) in [
            ("UPDATE t SET b = 1", r#"[{"affected_rows":2}]"#),
            ("INSERT INTO t VALUES (9, 8, 7) RETURNING a, b", r#"[{"a":9,"b":8}]"#),
            ("CREATE TABLE u AS SELECT * FROM t", r#"[{"affected_rows":0}]"#),
            ("CREATE VIRTUAL TABLE f USING fts5(x)", r#"[{"affected_rows":0}]"#),
            ("INSERT INTO f VALUES ('some words')", r#"[{"affected_rows":1}]"#),
            ("WITH x AS (SELECT 5) DELETE FROM t WHERE a IN (SELECT a FROM t)", r#"[{"affected_rows":3}]"#),
        ] {
            assert_eq!(write(&mut connection, query).unwrap(), answer, "{query}");
        }
        assert_eq!(read(&mut connection, "SELECT x FROM f WHERE f MATCH 'words'").unwrap(), r#"[{"x":"some words"}]"#);
    }

    #[test]
    fn a_change_whose_answer_is_too_large_is_not_made() {
        let mut connection = memory();
        write(&mut connection, "CREATE TABLE w AS SELECT 1 AS n").unwrap();
        let long = "UPDATE w SET n = n + 1 RETURNING n, hex(zeroblob(5000000)) AS h";
        assert!(write(&mut connection, long).is_err());
        assert_eq!(read(&mut connection, "SELECT n FROM w").unwrap(), r#"[{"n":1}]"#);
        write(&mut connection, "UPDATE w SET n = n + 1 RETURNING n").unwrap();
        assert_eq!(read(&mut connection, "SELECT n FROM w").unwrap(), r#"[{"n":2}]"#);
    }

    #[test]
    fn errors_say_what_to_do() {
        for (query, part) in [
            ("SELECT 1; SELECT 2", "one statement at a time"),
            ("SELECT ? + ?", "the query has 2 parameters"),
            ("SELECT * FROM gone", "Database error: no such table: gone"),
            ("ATTACH '/etc/passwd' AS x", "no ATTACH"),
            ("PRAGMA writable_schema = 1", "no PRAGMA writable_schema"),
            ("BEGIN", "none can be begun or ended"),
            ("-- nothing", "no statement that answers"),
            ("DELETE FROM t", "write_query changes"),
            ("WITH c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c", "with LIMIT"),
            ("SELECT hex(zeroblob(3000000))", "with substr"),
            ("SELECT zeroblob(3000000)", "with substr"),
        ] {
            let why = why(read(&mut memory(), query));
            assert!(why.contains(part), "{query}: {why}");
        }
        assert!(why(write(&mut memory(), "VACUUM INTO '/nowhere/x'")).contains("no ATTACH"));
    }
}
