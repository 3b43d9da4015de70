package wharf

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type spot struct {
	Latitude float64 `json:"latitude" description:"Degrees."`
	Height   *uint32 `json:"height"`
}

type paged struct {
	Page int `json:"page,omitempty" minimum:"1" default:"1"`
}

type wanted struct {
	paged
	Name    string          `json:"name" minLength:"1" pattern:"^[a-z]+$"`
	Unit    string          `json:"unit,omitempty" enum:"metre,foot"`
	Sizes   []int           `json:"sizes" enum:"1,2" maxItems:"2"`
	Place   *spot           `json:"place,omitempty" description:"Where."`
	ByName  map[string]spot `json:"by_name"`
	When    time.Time       `json:"when"`
	Any     any             `json:"any,omitempty"`
	Data    []byte          `json:"data,omitempty"`
	Region  string          `json:"region,omitzero" schema:"{\"x-mcp-header\":\"Region\"}"`
	Hidden  string          `json:"-"`
	private string
}

const wantedSchema = `{
	"type": "object",
	"properties": {
		"page": {"type": "integer", "minimum": 1, "default": 1},
		"name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1},
		"unit": {"type": "string", "enum": ["metre", "foot"]},
		"sizes": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}, "maxItems": 2},
		"place": {
			"type": "object",
			"properties": {
				"latitude": {"type": "number", "description": "Degrees."},
				"height": {"type": "integer", "minimum": 0}
			},
			"required": ["latitude"],
			"description": "Where."
		},
		"by_name": {"type": "object", "additionalProperties": {
			"type": "object",
			"properties": {
				"latitude": {"type": "number", "description": "Degrees."},
				"height": {"type": "integer", "minimum": 0}
			},
			"required": ["latitude"]
		}},
		"when": {"type": "string", "format": "date-time"},
		"any": {},
		"data": {"type": "string", "contentEncoding": "base64"},
		"region": {"type": "string", "x-mcp-header": "Region"}
	},
	"required": ["name", "sizes", "by_name", "when"]
}`

func compact(t *testing.T, text string) string {
	t.Helper()
	var to strings.Builder
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	sorted, _ := json.Marshal(value)
	to.Write(sorted)
	return to.String()
}

func TestStructsBecomeSchemas(t *testing.T) {
	text, err := argumentsSchema(reflect.TypeFor[wanted]())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := compact(t, text), compact(t, wantedSchema); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if page, name := strings.Index(text, `"page"`), strings.Index(text, `"name"`); page > name {
		t.Error("the order of the fields is lost")
	}
}

func TestWhoHasNoArgumentsHasPropertiesAllTheSame(t *testing.T) {
	text, err := argumentsSchema(reflect.TypeFor[struct{}]())
	if err != nil || text != `{"type":"object","properties":{}}` {
		t.Errorf("%s %v", text, err)
	}
}

type tree struct {
	Name     string `json:"name"`
	Children []tree `json:"children,omitempty"`
}

type garden struct {
	First tree `json:"first"`
}

func TestWhatContainsItselfKeepsItsReference(t *testing.T) {
	definition := `{"type":"object","properties":{"name":{"type":"string"},` +
		`"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["name"]}`
	for of, want := range map[reflect.Type]string{
		reflect.TypeFor[tree](): strings.TrimSuffix(definition, "}") + `,"$defs":{"tree":` + definition + `}}`,
		reflect.TypeFor[garden](): `{"type":"object","properties":{"first":{"$ref":"#/$defs/tree"}},"required":["first"],` +
			`"$defs":{"tree":` + definition + `}}`,
	} {
		if text, err := argumentsSchema(of); err != nil || text != want {
			t.Errorf("%v\ngot  %s\nwant %s", err, text, want)
		}
	}
}

func TestWrongTypesAndTagsAreNamed(t *testing.T) {
	type channel struct {
		Events chan int `json:"events"`
	}
	type keys struct {
		By map[int]string `json:"by"`
	}
	type bound struct {
		Size int `json:"size" minimum:"small"`
	}
	type choice struct {
		Size int `json:"size" enum:"1,two"`
	}
	type standard struct {
		Size int `json:"size" default:"few"`
	}
	for of, want := range map[reflect.Type]string{
		reflect.TypeFor[channel]():  "channel.Events: JSON has no chan int",
		reflect.TypeFor[keys]():     "keys.By: map[int]string has keys that are not strings",
		reflect.TypeFor[bound]():    `bound.Size: the tag minimum is "small"; it must be a number`,
		reflect.TypeFor[choice]():   `choice.Size: the tag enum has the value "two"; the field is a int`,
		reflect.TypeFor[standard](): `standard.Size: the tag default is "few"; the field is a int`,
		reflect.TypeFor[string]():   "its arguments are a string; they must be a struct, or any type with Details.InputSchema",
	} {
		if _, err := argumentsSchema(of); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEmptyListsAreListsInResults(t *testing.T) {
	type inner struct {
		Names []string          `json:"names"`
		By    map[string][]int  `json:"by"`
		Next  *inner            `json:"next,omitempty"`
		More  map[string]string `json:"more,omitempty"`
	}
	given := inner{By: map[string][]int{"a": nil}, Next: &inner{}}
	want := `{"names":[],"by":{"a":[]},"next":{"names":[],"by":{}}}`
	if got := structured(given); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if given.Names != nil || given.Next.Names != nil {
		t.Error("the author's value is changed")
	}
}
