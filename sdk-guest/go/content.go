package wharf

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Content is one block of a tool's result or of a prompt's message. Make it by Text, Image, Audio, Link, Embedded or Raw.
type Content struct {
	kind     contentKind
	text     string
	media    media
	link     ResourceLink
	resource ResourceContents
}

type contentKind uint8

const (
	textContent contentKind = iota
	imageContent
	audioContent
	linkContent
	embeddedContent
	rawContent
)

type media struct {
	mimeType string
	data     []byte
}

// ResourceLink points to a resource, which need not be listed.
type ResourceLink struct {
	URI, Name, MIMEType string
	More                More
}

// ResourceContents is one item of a resource's contents: its bytes if they are set, otherwise its text.
type ResourceContents struct {
	URI, MIMEType string
	Text          string
	Bytes         []byte
	More          More
}

func Text(text string) Content { return Content{kind: textContent, text: text} }

func Image(mimeType string, data []byte) Content {
	return Content{kind: imageContent, media: media{mimeType, data}}
}

func Audio(mimeType string, data []byte) Content {
	return Content{kind: audioContent, media: media{mimeType, data}}
}

func Link(link ResourceLink) Content { return Content{kind: linkContent, link: link} }

// Embedded is a resource embedded in a result.
func Embedded(resource ResourceContents) Content {
	return Content{kind: embeddedContent, resource: resource}
}

// Raw is a complete MCP content block: for annotations, _meta, or kinds that are newer than this package.
func Raw(block any) Content { return Content{kind: rawContent, text: encode(block)} }

// Result is a complete result of a tool.
type Result struct {
	Content []Content
	// Structured is a value that encoding/json can encode.
	Structured any
	IsError    bool
	More       More
}

// Role is the speaker of a prompt's message.
type Role uint8

const (
	User Role = iota
	Assistant
)

// Message is one message of a prompt.
type Message struct {
	Role    Role
	Content Content
}

// PromptResult is a complete result of a prompt.
type PromptResult struct {
	Description string
	Messages    []Message
	More        More
}

// Error is a protocol error, for requests that are wrong rather than operations that failed. Any other error is a failed call whose
// message the model reads. Code is one of the plugin's own: -32768 to -32000, 403 and 429 are reserved.
type Error struct {
	Code    int32
	Message string
	Data    any
}

func (e *Error) Error() string { return e.Message }

const (
	codeInvalidParams    = -32602
	codeResourceNotFound = -32002
)

// InvalidParams is the error for parameters that satisfy the schema but are invalid for another reason.
func InvalidParams(format string, values ...any) error {
	return &Error{Code: codeInvalidParams, Message: fmt.Sprintf(format, values...)}
}

// NotFound is the error for a URI without a resource.
func NotFound(uri string) error {
	return &Error{Code: codeResourceNotFound, Message: "Resource not found", Data: map[string]string{"uri": uri}}
}

// outcome is the outcome of a call: a result, questions or a failure.
type outcome struct {
	// text is shorthand for a result with one text block; json is a structured result.
	text, json *string
	result     *Result
	contents   []ResourceContents
	prompt     *PromptResult
	ask        *round
	failure    *failure
}

type failure struct {
	message string
	code    *int32
	data    string
}

func failureOf(err error) *failure {
	var protocol *Error
	if !errors.As(err, &protocol) {
		return &failure{message: err.Error()}
	}
	failed := &failure{message: protocol.Message, code: &protocol.Code}
	if protocol.Data != nil {
		failed.data = encode(protocol.Data)
	}
	return failed
}

func toolOutcome(value any) outcome {
	switch value := value.(type) {
	case nil, struct{}:
		return outcome{result: &Result{}}
	case string:
		return outcome{text: &value}
	case Content:
		return outcome{result: &Result{Content: []Content{value}}}
	case []Content:
		return outcome{result: &Result{Content: value}}
	case Result:
		return outcome{result: &value}
	case *Result:
		return outcome{result: value}
	}
	text := structured(value)
	return outcome{json: &text}
}

func readOutcome(value any, uri, mimeType string) outcome {
	switch value := value.(type) {
	case string:
		return outcome{text: &value}
	case []byte:
		if value == nil {
			value = []byte{}
		}
		return outcome{contents: []ResourceContents{{URI: uri, MIMEType: mimeType, Bytes: value}}}
	case ResourceContents:
		return outcome{contents: []ResourceContents{value}}
	case []ResourceContents:
		return outcome{contents: value}
	}
	return outcome{failure: &failure{message: fmt.Sprintf(
		"a resource is a string, a []byte or a []wharf.ResourceContents; the function for %s returns %T", uri, value)}}
}

func promptOutcome(value any, name string) outcome {
	switch value := value.(type) {
	case string:
		return outcome{text: &value}
	case []Message:
		return outcome{prompt: &PromptResult{Messages: value}}
	case PromptResult:
		return outcome{prompt: &value}
	}
	return outcome{failure: &failure{message: fmt.Sprintf(
		"a prompt is a string, a []wharf.Message or a wharf.PromptResult; the function of %s returns %T", name, value)}}
}

// structured returns a value as JSON in which nil slices are empty lists. encoding/json would write null, which the schema of a list does
// not accept.
func structured(value any) string {
	if raw, ok := value.(json.RawMessage); ok {
		return string(raw)
	}
	return encode(filled(value))
}
