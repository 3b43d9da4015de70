package wharf

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Capabilities is a set of the kinds of questions that a client can answer.
type Capabilities uint8

const (
	CanForm Capabilities = 1 << iota
	CanURL
	CanSample
	CanSampleWithTools
	CanRoots
)

// Reports is a set of the kinds of reports that a client wants to get while a call runs.
type Reports uint8

const (
	WantsProgress Reports = 1 << iota
	WantsLog
)

// Call is a call of the plugin: its context, the answers received so far, and methods to ask questions and report progress.
type Call struct {
	answers      map[string]Answer
	given        []byte
	kept         []byte
	capabilities Capabilities
	reports      Reports
	caller       Caller
	more         string
}

// Caller is information about the caller from the host.
type Caller struct {
	// ID is an opaque id under which a plugin can store what belongs to one user. It is made for this plugin alone. It is empty if wharf
	// does not tell callers apart (stdio, or HTTP without credentials); all such calls count as one caller's.
	ID string `json:"-"`
	// Revision is the MCP revision of the request.
	Revision string `json:"-"`
	// Client is the client's program, as it names itself; nil if it does not.
	Client *Client `json:"-"`
	// Meta is the request's _meta.
	Meta map[string]json.RawMessage `json:"meta"`
	// Capabilities are the client's, as it sent them.
	Capabilities json.RawMessage `json:"capabilities"`
}

// Client is a client's program, as it names itself.
type Client struct {
	Name, Version, Title string
}

// Caller returns information about the caller.
func (c *Call) Caller() Caller {
	caller := c.caller
	if c.more != "" {
		if err := decode(c.more, &caller); err != nil {
			panic(stop{failure: failureOf(fmt.Errorf("the host's information about the caller cannot be read: %w", err))})
		}
	}
	return caller
}

// Can reports whether the client can answer all of these kinds of questions.
func (c *Call) Can(capabilities Capabilities) bool {
	return c.capabilities&capabilities == capabilities
}

// Wants reports whether the client wants to get all of these kinds of reports during this call.
func (c *Call) Wants(reports Reports) bool { return c.reports&reports == reports }

// Action is the kind of an answer.
type Action uint8

const (
	Accepted Action = iota
	Declined
	Cancelled
	// The client's model answered, or the client sent its roots.
	sampled
	listed
)

// Question is a question that only the client can answer. Make it by Form, FormOf, URL, Sample or Roots.
type Question struct {
	Key           string
	kind          questionKind
	message, text string
}

type questionKind uint8

const (
	formQuestion questionKind = iota
	urlQuestion
	sampleQuestion
	rootsQuestion
)

// Form asks the user to fill in a form with one field for each field of T: strings, numbers, booleans and enums, as MCP allows.
func Form[T any](key, message string) Question {
	text, err := argumentsSchema(reflect.TypeFor[T]())
	if err != nil {
		panic(fmt.Sprintf("the form %q: %v", key, err))
	}
	return FormOf(key, message, text)
}

// FormOf asks the user to fill in a form that a JSON Schema describes.
func FormOf(key, message, schema string) Question {
	return Question{Key: key, kind: formQuestion, message: message, text: schema}
}

// URL asks the user to open a URL in a browser, over https.
func URL(key, message, url string) Question {
	return Question{Key: key, kind: urlQuestion, message: message, text: url}
}

// Sample asks the client's model. The parameters are those of sampling/createMessage.
func Sample(key string, parameters any) Question {
	return Question{Key: key, kind: sampleQuestion, text: encode(parameters)}
}

// Roots asks for the directories and files that the client has opened.
func Roots(key string) Question { return Question{Key: key, kind: rootsQuestion} }

// Answer is the reply to one question.
type Answer struct {
	Action Action
	// JSON is the user's input, or the result of sampling/createMessage, which comes from a model: do not trust it.
	JSON json.RawMessage
	// Roots is the answer to a question made by Roots.
	Roots []Root
}

// Root is a directory or file that the client has opened, as the client spells it. Directories returns those that the plugin may use.
type Root struct {
	URI, Name string
}

// stop is the panic value that ends a call with questions or a failure. Only a panic unwinds through the author's code. wharf calls the
// function again from its start when it has the answers.
type stop struct {
	round   *round
	failure *failure
}

type round struct {
	questions []Question
	state     []byte
}

// Ask shows a form to the user and returns their input. The first time, this does not return: wharf asks the user and calls the
// function again from its start. So before the last question, do nothing that must not happen twice.
//
//	type Sure struct {
//		Really bool `json:"really"`
//	}
//
//	sure, action := wharf.Ask[Sure](c, "sure", "Delete 14 notes?")
//	if action != wharf.Accepted || !sure.Really {
//		return "kept", nil
//	}
func Ask[T any](c *Call, key, message string) (T, Action) {
	var entered T
	answer := AskAll(c, Form[T](key, message))[0]
	if answer.Action == Accepted {
		c.read(key, answer, Accepted, &entered)
	}
	return entered, answer.Action
}

// AskAll asks several questions in one round. The answers are in the order of the questions.
func AskAll(c *Call, questions ...Question) []Answer {
	var answers []Answer
	var open []Question
	for _, question := range questions {
		answer, found := c.answers[question.Key]
		if !found {
			open = append(open, question)
		}
		answers = append(answers, answer)
	}
	if len(open) > 0 {
		panic(stop{round: &round{questions: open, state: c.kept}})
	}
	return answers
}

// AskURL asks the user to open a URL in a browser, and reports whether they agreed.
func (c *Call) AskURL(key, message, url string) bool {
	return AskAll(c, URL(key, message, url))[0].Action == Accepted
}

// Sample asks the client's model; the parameters are those of sampling/createMessage. Do not trust the reply.
func (c *Call) Sample(key string, parameters any) (Reply, error) {
	answer := AskAll(c, Sample(key, parameters))[0]
	if answer.Action == Declined || answer.Action == Cancelled {
		return Reply{}, errors.New("the client did not want to sample")
	}
	var reply Reply
	c.read(key, answer, sampled, &reply)
	reply.JSON = answer.JSON
	return reply, nil
}

// Roots returns the roots that the client has opened.
func (c *Call) Roots() []Root {
	answer := AskAll(c, Roots("roots"))[0]
	if answer.Action != listed {
		panic(stop{failure: unexpected("roots")})
	}
	return answer.Roots
}

// Keep stores a value for the next round, when this function is called again with answers. The value has at most 64 KiB of JSON, and the
// client cannot read it.
func (c *Call) Keep(value any) { c.kept = []byte(encode(value)) }

// Kept reads the value that an earlier round stored, and reports whether there is one.
func (c *Call) Kept(value any) bool {
	if c.given == nil {
		return false
	}
	if err := json.Unmarshal(c.given, value); err != nil {
		panic(stop{failure: failureOf(fmt.Errorf("the value stored by Keep does not fit: %w", err))})
	}
	return true
}

// Reply is the answer of a client's model.
type Reply struct {
	Role    string          `json:"role"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	// JSON is the complete result of sampling/createMessage.
	JSON json.RawMessage `json:"-"`
}

// Text returns the text of the reply, or of its first block if the client sent several.
func (r Reply) Text() string {
	type block struct {
		Text string `json:"text"`
	}
	var one block
	if json.Unmarshal(r.Content, &one) == nil {
		return one.Text
	}
	var several []block
	if json.Unmarshal(r.Content, &several) == nil && len(several) > 0 {
		return several[0].Text
	}
	return ""
}

func (c *Call) read(key string, answer Answer, action Action, to any) {
	if answer.Action != action {
		panic(stop{failure: unexpected(key)})
	}
	if err := json.Unmarshal(answer.JSON, to); err != nil {
		panic(stop{failure: failureOf(fmt.Errorf("the answer to %q does not fit: %w", key, err))})
	}
}

func unexpected(key string) *failure {
	return &failure{message: fmt.Sprintf("the answer to %q is of another kind than the question", key)}
}
