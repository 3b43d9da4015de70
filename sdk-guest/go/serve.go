package wharf

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// The functions behind the exports, with the types of this package. exports_wasip1.go converts them to the types of the contract.

type listedTool struct {
	*tool
	input, output string
}

func listTools() (tools []listedTool, failed *failure) {
	defer recovered(&failed)
	if len(plugin.tools)+len(plugin.resources)+len(plugin.prompts) == 0 {
		return nil, &failure{message: "the plugin registers nothing: call wharf.Tool in a function init of package main"}
	}
	names := map[string]position{}
	for at := range plugin.tools {
		one := listedTool{tool: &plugin.tools[at]}
		if first, found := names[one.name]; found {
			return nil, &failure{message: fmt.Sprintf("%s: the tool %q is already registered at %s", one.at, one.name, first)}
		}
		names[one.name] = one.at
		var err error
		one.input = one.details.InputSchema
		if one.input == "" {
			one.input, err = argumentsSchema(one.arguments)
		}
		if err == nil {
			one.output, err = one.outputSchema()
		}
		if err != nil {
			return nil, &failure{message: fmt.Sprintf("%s: the tool %q: %v", one.at, one.name, err)}
		}
		tools = append(tools, one)
	}
	return tools, nil
}

// askBeforeTask is the member of a tool's _meta that makes wharf ask before a task begins.
const askBeforeTask = "dev.wharf/ask-before-task"

// more returns the other members of the MCP tool object.
func (d Details) more() More {
	if !d.AskBeforeTask {
		return d.More
	}
	more, meta := maps.Clone(d.More), map[string]any{askBeforeTask: true}
	if more == nil {
		more = More{}
	}
	if given, ok := more["_meta"].(map[string]any); ok {
		for key, value := range given {
			meta[key] = value
		}
	}
	more["_meta"] = meta
	return more
}

func callTool(name, args string, call *Call) (result outcome) {
	for at := range plugin.tools {
		if one := &plugin.tools[at]; one.name == name {
			return run(func() (any, error) { return one.run(call, args) }, toolOutcome)
		}
	}
	return unknown("tool", name)
}

func readResource(uri string, call *Call) outcome {
	for _, one := range plugin.resources {
		variables, fits := map[string]string(nil), uri == one.uri
		if one.isTemplate {
			variables, fits = match(one.uri, uri)
		}
		if fits {
			return run(
				func() (any, error) { return one.run(call, variables) },
				func(value any) outcome { return readOutcome(value, uri, one.mimeType) },
			)
		}
	}
	return outcome{failure: failureOf(NotFound(uri))}
}

type promptArgument struct {
	name, description string
	isRequired        bool
}

func (p *prompt) params() ([]promptArgument, error) {
	text, err := argumentsSchema(p.arguments)
	if err != nil {
		return nil, fmt.Errorf("%s: the prompt %q: %w", p.at, p.name, err)
	}
	var made struct {
		Properties map[string]struct{ Type, Description string }
		Required   []string
	}
	if err := decode(text, &made); err != nil {
		return nil, err
	}
	// The arguments have the order of the struct's fields, which decoding the schema into a map would lose.
	maker := deriver{}
	properties, required := &schema{}, []string{}
	if err := maker.fields(valueType(p.arguments), properties, &required); err != nil {
		return nil, err
	}
	var params []promptArgument
	for _, member := range properties.members {
		if made.Properties[member.key].Type != "string" {
			return nil, fmt.Errorf("%s: the prompt %q: its argument %q must be a string", p.at, p.name, member.key)
		}
		one := promptArgument{name: member.key, description: made.Properties[member.key].Description}
		for _, name := range required {
			one.isRequired = one.isRequired || name == member.key
		}
		params = append(params, one)
	}
	return params, nil
}

func getPrompt(name string, values map[string]string, call *Call) outcome {
	for at := range plugin.prompts {
		if one := &plugin.prompts[at]; one.name == name {
			return run(
				func() (any, error) { return one.run(call, values) },
				func(value any) outcome { return promptOutcome(value, name) },
			)
		}
	}
	return unknown("prompt", name)
}

func complete(target Target, argument, value string, others map[string]string) (values []string, failed *failure) {
	defer recovered(&failed)
	for _, one := range plugin.completions {
		if one.target == target && one.argument == argument {
			values, err := one.run(value, others)
			if err != nil {
				return nil, failureOf(err)
			}
			return values, nil
		}
	}
	return nil, nil
}

func unknown(kind, name string) outcome {
	return outcome{failure: failureOf(InvalidParams("unknown %s: %s", kind, name))}
}

// run calls a function of the author and converts its result to an outcome. A question or a panic ends the function early.
func run(function func() (any, error), taken func(any) outcome) (result outcome) {
	defer func() {
		if reason := recover(); reason != nil {
			if asked, ok := reason.(stop); ok {
				result = outcome{ask: asked.round, failure: asked.failure}
				return
			}
			result = outcome{failure: panicked(reason)}
		}
	}()
	value, err := function()
	if err != nil {
		return outcome{failure: failureOf(err)}
	}
	return taken(value)
}

func recovered(failed **failure) {
	if reason := recover(); reason != nil {
		*failed = panicked(reason)
	}
}

// panicked returns a failure for a panic: its message, and the innermost line of the author's code on the stack.
func panicked(reason any) *failure {
	message := fmt.Sprintf("panic: %v", reason)
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(1, at[:])])
	hasPanicked := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic" || frame.Function == "runtime.panicmem" || frame.Function == "runtime.sigpanic":
			hasPanicked = true
		case hasPanicked && isAuthors(frame):
			return &failure{message: message + " (" + place(frame) + ")"}
		}
		if !more {
			return &failure{message: message}
		}
	}
}

// isAuthors reports whether a frame is in package main or another package of the author's module.
func isAuthors(frame runtime.Frame) bool {
	if strings.HasPrefix(frame.Function, "main.") {
		return true
	}
	build, ok := debug.ReadBuildInfo()
	return ok && build.Main.Path != "" && strings.HasPrefix(frame.Function, build.Main.Path+"/")
}

// unstructured lists the result types that are not structured content.
var unstructured = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[struct{}](), reflect.TypeFor[Content](), reflect.TypeFor[[]Content](),
	reflect.TypeFor[Result](), reflect.TypeFor[*Result](), rawType,
}

// outputSchema returns the output schema of a tool, or an empty text if its result is not structured content.
func (t *tool) outputSchema() (string, error) {
	of := t.result
	if t.details.OutputSchema != "" || of.Kind() == reflect.Interface || slices.Contains(unstructured, of) {
		return t.details.OutputSchema, nil
	}
	if kind := valueType(of).Kind(); kind != reflect.Struct && kind != reflect.Map {
		return "", fmt.Errorf("it returns a %s; a tool returns a string, a wharf.Content, a []wharf.Content, a wharf.Result, or a "+
			"struct or map as structured content", of)
	}
	return schemaOf(valueType(of))
}

// match matches a URI against a template of literals and {x} or {+x}, and returns the variables. {x} does not match a slash.
func match(template, uri string) (map[string]string, bool) {
	literal, rest, hasVariable := strings.Cut(template, "{")
	if !hasVariable {
		return map[string]string{}, template == uri
	}
	uri, begins := strings.CutPrefix(uri, literal)
	name, rest, closes := strings.Cut(rest, "}")
	if !begins || !closes {
		return nil, false
	}
	name, spans := strings.CutPrefix(name, "+")
	limit := len(uri)
	if slash := strings.IndexByte(uri, '/'); !spans && slash >= 0 {
		limit = slash
	}
	// Matching is greedy: the longest value of a variable is tried first.
	for end := limit; end > 0; end-- {
		if variables, fits := match(rest, uri[end:]); fits {
			variables[name] = uri[:end]
			return variables, true
		}
	}
	return nil, false
}
