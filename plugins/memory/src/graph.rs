//! The graph of entities with observations and relations between them, and the operations of the tools on it.

use std::collections::HashSet;

use wharf_sdk::{
    Error, Result, schemars,
    schemars::JsonSchema,
    serde,
    serde::{Deserialize, Serialize, de::DeserializeOwned},
};

use serde_json::{Map, Value};

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(crate = "serde", rename_all = "camelCase")]
#[schemars(crate = "schemars")]
pub struct Entity {
    /// The name of the entity
    pub name: String,
    /// The type of the entity
    pub entity_type: String,
    /// An array of observation contents associated with the entity
    pub observations: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(crate = "serde", rename_all = "camelCase")]
#[schemars(crate = "schemars")]
pub struct Relation {
    /// The name of the entity where the relation starts
    pub from: String,
    /// The name of the entity where the relation ends
    pub to: String,
    /// The type of the relation
    pub relation_type: String,
}

/// An entity or relation in a line of the file, with the other members of the line, which other programs may have added.
#[derive(Clone, Debug, PartialEq)]
struct Kept<T> {
    item: T,
    rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    entities: Vec<Kept<Entity>>,
    relations: Vec<Kept<Relation>>,
    /// Lines that are neither an entity nor a relation.
    others: Vec<String>,
}

/// The part of a graph in an answer.
#[derive(Debug, PartialEq, Serialize)]
#[serde(crate = "serde")]
pub struct Part {
    pub entities: Vec<Entity>,
    pub relations: Vec<Relation>,
}

impl<T: DeserializeOwned + Serialize> Kept<T> {
    fn read(mut line: Map<String, Value>) -> Result<Self, serde_json::Error> {
        let item: T = serde_json::from_value(Value::Object(line.clone()))?;
        if let Value::Object(own) = serde_json::to_value(&item)? {
            line.retain(|key, _| !own.contains_key(key));
        }
        Ok(Self { item, rest: line })
    }

    fn line(&self, kind: &str) -> Result<String> {
        let mut line = Map::new();
        line.insert("type".to_owned(), kind.into());
        if let Value::Object(own) = serde_json::to_value(&self.item)? {
            line.extend(own);
        }
        line.extend(self.rest.iter().map(|(key, value)| (key.clone(), value.clone())));
        Ok(serde_json::to_string(&line)?)
    }
}

impl<T> From<T> for Kept<T> {
    fn from(item: T) -> Self {
        Self { item, rest: Map::new() }
    }
}

impl Graph {
    /// Parses the lines of a file. A line that cannot be parsed is an error, because it would be lost when the file is written again.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut graph = Self::default();
        for (line, number) in text.split('\n').zip(1..) {
            if line.trim().is_empty() {
                continue;
            }
            graph.take(line).map_err(|error| format!("line {number} is damaged: {error}"))?;
        }
        Ok(graph)
    }

    fn take(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let mut members: Map<String, Value> = serde_json::from_str(line)?;
        let kind = members.shift_remove("type");
        match kind.as_ref().and_then(Value::as_str) {
            Some("entity") => self.entities.push(Kept::read(members)?),
            Some("relation") => self.relations.push(Kept::read(members)?),
            _ => self.others.push(line.trim().to_owned()),
        }
        Ok(())
    }

    /// Returns the text of the file: entities, relations, and other lines. It ends with a line ending, so that other programs can append
    /// lines.
    pub fn write(&self) -> Result<String> {
        let entities = self.entities.iter().map(|kept| kept.line("entity"));
        let relations = self.relations.iter().map(|kept| kept.line("relation"));
        let others = self.others.iter().map(|line| Ok(line.clone()));
        let ended = |line: Result<String>| line.map(|line| line + "\n");
        entities.chain(relations).chain(others).map(ended).collect()
    }

    /// Adds the entities whose names do not exist yet, and returns those.
    pub fn create_entities(&mut self, entities: Vec<Entity>) -> Vec<Entity> {
        let known: HashSet<&str> = self.entities.iter().map(|kept| kept.item.name.as_str()).collect();
        let new: Vec<Entity> = entities.into_iter().filter(|entity| !known.contains(entity.name.as_str())).collect();
        self.entities.extend(new.iter().cloned().map(Kept::from));
        new
    }

    pub fn create_relations(&mut self, relations: Vec<Relation>) -> Vec<Relation> {
        let known = |relation: &Relation| self.relations.iter().any(|kept| kept.item == *relation);
        let new: Vec<Relation> = relations.into_iter().filter(|relation| !known(relation)).collect();
        self.relations.extend(new.iter().cloned().map(Kept::from));
        new
    }

    /// Adds the observations that the entity does not have yet, and returns those. It is an error if the entity does not exist.
    pub fn add_observations(&mut self, name: &str, contents: Vec<String>) -> Result<Vec<String>> {
        let Some(observations) = self.observations(name) else {
            return Err(Error::failed(format!("Entity with name {name} not found")));
        };
        let new: Vec<String> = contents.into_iter().filter(|content| !observations.contains(content)).collect();
        observations.extend(new.iter().cloned());
        Ok(new)
    }

    pub fn delete_entities(&mut self, names: &[String]) {
        self.entities.retain(|kept| !names.contains(&kept.item.name));
        self.relations.retain(|kept| !names.contains(&kept.item.from) && !names.contains(&kept.item.to));
    }

    pub fn delete_observations(&mut self, name: &str, gone: &[String]) {
        if let Some(observations) = self.observations(name) {
            observations.retain(|content| !gone.contains(content));
        }
    }

    pub fn delete_relations(&mut self, gone: &[Relation]) {
        self.relations.retain(|kept| !gone.contains(&kept.item));
    }

    fn observations(&mut self, name: &str) -> Option<&mut Vec<String>> {
        self.entities.iter_mut().find(|kept| kept.item.name == name).map(|kept| &mut kept.item.observations)
    }

    pub fn whole(self) -> Part {
        let entities = self.entities.into_iter().map(|kept| kept.item).collect();
        Part { entities, relations: self.relations.into_iter().map(|kept| kept.item).collect() }
    }

    /// Returns the entities in which a text occurs, ignoring case, and the relations that begin or end at one of them.
    pub fn search(self, query: &str) -> Part {
        let query = query.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&query);
        self.of(|entity| {
            has(&entity.name) || has(&entity.entity_type) || entity.observations.iter().any(|content| has(content))
        })
    }

    /// Returns the entities of these names, and the relations that begin or end at one of them.
    pub fn open(self, names: &[String]) -> Part {
        self.of(|entity| names.contains(&entity.name))
    }

    fn of(self, wanted: impl Fn(&Entity) -> bool) -> Part {
        let Part { mut entities, mut relations } = self.whole();
        entities.retain(wanted);
        let names: HashSet<&str> = entities.iter().map(|entity| entity.name.as_str()).collect();
        relations.retain(|relation| names.contains(relation.from.as_str()) || names.contains(relation.to.as_str()));
        Part { entities, relations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "{\"type\":\"entity\",\"name\":\"Ann\",\"entityType\":\"person\",\"observations\":[\"tall\"],\"since\":2020}\n\
                         {\"type\":\"relation\",\"from\":\"Ann\",\"to\":\"Bob\",\"relationType\":\"knows\"}\n\
                         {\"type\":\"note\",\"text\":\"by another program\"}\n";

    #[test]
    fn what_is_not_understood_stays() {
        let mut graph = Graph::read(&format!("\n{}\r\n", LINES.replace('\n', "\r\n\r\n"))).unwrap();
        assert_eq!(graph.write().unwrap(), LINES);
        graph.add_observations("Ann", vec!["tall".into(), "kind".into()]).unwrap();
        assert_eq!(graph.write().unwrap(), LINES.replace("[\"tall\"]", "[\"tall\",\"kind\"]"));
    }

    #[test]
    fn damage_is_told_with_its_line() {
        for (damaged, said) in [
            ("{\"type\":\"entity\",", "EOF while parsing"),
            ("{\"type\":\"entity\",\"name\":\"Ann\"}", "missing field `entityType`"),
            ("[]", "invalid type"),
        ] {
            let error = Graph::read(&format!("{LINES}{damaged}\n")).unwrap_err();
            assert!(error.starts_with("line 4 is damaged") && error.contains(said), "{error}");
        }
    }

    #[test]
    fn relations_of_what_is_found_are_found_and_go_with_it() {
        let mut graph = Graph::read(LINES).unwrap();
        let found = graph.clone().search("TAL");
        assert_eq!((found.entities.len(), found.relations.len()), (1, 1));
        assert_eq!(graph.clone().open(&["Bob".into()]), Part { entities: vec![], relations: vec![] });
        graph.delete_entities(&["Bob".into()]);
        assert_eq!(graph.whole().relations, []);
    }
}
