// Package wharf is for writing wharf plugins in Go: MCP tools, resources and prompts in a sandboxed WebAssembly component.
//
//	package main
//
//	import "wharf"
//
//	type Greet struct {
//		Name string `json:"name" description:"Whom to greet."`
//	}
//
//	func init() {
//		wharf.Tool("greet", "Greets a person.", func(c *wharf.Call, args Greet) (string, error) {
//			return "Hello, " + args.Name + "!", nil
//		})
//	}
//
//	func main() {}
//
// Everything is registered in init, because main does not run in a component. By default, every call runs in a new instance: nothing in
// memory outlives it.
package wharf

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// Details are options of a tool beyond its function. The zero value is the default.
type Details struct {
	Title string
	// Hints for clients, which grant nothing.
	ReadOnly, Destructive, Idempotent, OpenWorld Hint
	// Needs are the capabilities that the client must have, or wharf refuses the call.
	Needs Capabilities
	// Task says whether the call may run in the background.
	Task TaskSupport
	// AskBeforeTask asks questions before a task begins rather than while it runs.
	AskBeforeTask bool
	// InputSchema is a JSON Schema in place of the argument type's, which is then often a json.RawMessage.
	InputSchema string
	// OutputSchema is a JSON Schema in place of the result type's.
	OutputSchema string
	// More are other members of the MCP tool object, such as icons and _meta.
	More map[string]any
}

// Hint is a hint that a tool gives about itself; the zero value gives none.
type Hint uint8

const (
	Unsaid Hint = iota
	Yes
	No
)

// TaskSupport says whether a call may run as a task, in the background.
type TaskSupport uint8

const (
	TaskForbidden TaskSupport = iota
	TaskOptional
	// TaskRequired means that clients without support for tasks cannot call the tool.
	TaskRequired
)

// More are other members of an MCP object, such as title, icons, annotations and _meta.
type More map[string]any

// Target names the prompt or the resource template (by its text) whose argument is completed.
type Target struct {
	Prompt, Template string
}

type tool struct {
	name, description string
	details           Details
	arguments, result reflect.Type
	run               func(*Call, string) (any, error)
	at                position
}

type resource struct {
	uri, name, description, mimeType string
	more                             More
	isTemplate                       bool
	run                              func(*Call, map[string]string) (any, error)
}

type prompt struct {
	name, description string
	more              More
	arguments         reflect.Type
	run               func(*Call, map[string]string) (any, error)
	at                position
}

type completion struct {
	target   Target
	argument string
	run      func(value string, others map[string]string) ([]string, error)
}

// plugin has everything that is registered. The author's init functions fill it, and it is only read afterwards.
var plugin struct {
	tools       []tool
	resources   []resource
	prompts     []prompt
	completions []completion
}

// Tool registers a tool. Its arguments are a struct whose fields give the JSON Schema:
//
//	type Search struct {
//		Text  string   `json:"text" description:"What to look for." minLength:"1"`
//		Limit int      `json:"limit,omitempty" minimum:"1" maximum:"100" default:"10"`
//		Order string   `json:"order,omitempty" enum:"newest,oldest"`
//		Tags  []string `json:"tags,omitempty"`
//	}
//
// A field is optional if it is a pointer or says omitempty. Other keywords go into the tag `schema`, as JSON:
// `schema:"{\"multipleOf\":5}"`.
//
// It returns a string, a Content, a []Content, a Result, or any other type, which is then structured content and from which the output
// schema is derived. An error is a failed call whose message the model reads.
func Tool[A, R any](name, description string, run func(*Call, A) (R, error), details ...Details) {
	one := tool{name: name, description: description, at: caller()}
	one.arguments, one.result = reflect.TypeFor[A](), reflect.TypeFor[R]()
	if len(details) > 0 {
		one.details = details[0]
	}
	one.run = func(call *Call, text string) (any, error) {
		var args A
		if err := decode(text, &args); err != nil {
			return nil, fmt.Errorf("the arguments do not fit: %w", err)
		}
		return run(call, args)
	}
	plugin.tools = append(plugin.tools, one)
}

// Resource registers a resource by its URI. Its function returns a string, a []byte or a []ResourceContents.
func Resource[R any](uri, name, description, mimeType string, read func(*Call) (R, error), more ...More) {
	plugin.resources = append(plugin.resources, resource{
		uri: uri, name: name, description: description, mimeType: mimeType, more: merged(more),
		run: func(call *Call, _ map[string]string) (any, error) { return read(call) },
	})
}

// Template registers resources by a URI template of literals and variables: "note:///{day}". A variable {day} does not match a
// slash, {+path} does.
func Template[R any](
	template, name, description, mimeType string, read func(*Call, map[string]string) (R, error), more ...More,
) {
	plugin.resources = append(plugin.resources, resource{
		uri: template, name: name, description: description, mimeType: mimeType, more: merged(more), isTemplate: true,
		run: func(call *Call, variables map[string]string) (any, error) { return read(call, variables) },
	})
}

// Prompt registers a prompt. Its arguments are a struct of strings; the tags are those of Tool. It returns a string, a []Message
// or a PromptResult.
func Prompt[A, R any](name, description string, run func(*Call, A) (R, error), more ...More) {
	plugin.prompts = append(plugin.prompts, prompt{
		name: name, description: description, more: merged(more), arguments: reflect.TypeFor[A](), at: caller(),
		run: func(call *Call, values map[string]string) (any, error) {
			var args A
			if err := decode(encode(values), &args); err != nil {
				return nil, fmt.Errorf("the arguments do not fit: %w", err)
			}
			return run(call, args)
		},
	})
}

// Complete registers suggestions for one argument of a prompt or template, best first.
func Complete(target Target, argument string, run func(value string, others map[string]string) ([]string, error)) {
	plugin.completions = append(plugin.completions, completion{target, argument, run})
}

func merged(all []More) More {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// position is the line of the author's code that registers something, for messages about mistakes in it.
type position uintptr

func caller() position {
	var at [1]uintptr
	// Skips runtime.Callers, this function and its caller in this package.
	runtime.Callers(3, at[:])
	return position(at[0])
}

func (p position) String() string {
	frame, _ := runtime.CallersFrames([]uintptr{uintptr(p)}).Next()
	return place(frame)
}

func place(frame runtime.Frame) string {
	if frame.File == "" {
		return "an unknown place"
	}
	// Only the file's name, without its folders.
	file := frame.File[strings.LastIndex(frame.File, "/")+1:]
	return fmt.Sprintf("%s:%d", file, frame.Line)
}

func decode(text string, to any) error {
	return json.Unmarshal([]byte(text), to)
}

// encode returns a value as JSON. It panics if the author put something into the value that JSON cannot represent.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}
