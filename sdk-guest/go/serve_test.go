//go:build !wasip1

package wharf

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// registered runs a registration for one test.
func registered(t *testing.T, register func()) {
	t.Helper()
	kept := plugin
	plugin.tools, plugin.resources, plugin.prompts, plugin.completions = nil, nil, nil, nil
	t.Cleanup(func() { plugin = kept })
	register()
}

type person struct {
	Name string `json:"name"`
}

func TestResultsOfTools(t *testing.T) {
	registered(t, func() {
		Tool("text", "", func(*Call, person) (string, error) { return "hello", nil })
		Tool("nothing", "", func(*Call, struct{}) (struct{}, error) { return struct{}{}, nil })
		Tool("blocks", "", func(*Call, struct{}) ([]Content, error) { return []Content{Text("a"), Text("b")}, nil })
		Tool("person", "", func(_ *Call, one person) (person, error) { return one, nil })
		Tool("fails", "", func(*Call, struct{}) (string, error) { return "", errors.New("no luck") })
		Tool("refuses", "", func(*Call, struct{}) (string, error) { return "", InvalidParams("no %s", "date") })
	})
	tools, failed := listTools()
	if failed != nil || len(tools) != 6 {
		t.Fatal(failed, len(tools))
	}
	if want := `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`; tools[3].output != want {
		t.Errorf("got %s", tools[3].output)
	}
	if tools[0].output != "" || tools[1].output != "" || tools[2].output != "" {
		t.Error("a result that is not structured content has an output schema")
	}
	call := func(name, args string) outcome { return callTool(name, args, &Call{}) }
	if got := call("text", `{"name":"Ada"}`); got.text == nil || *got.text != "hello" {
		t.Errorf("%+v", got)
	}
	if got := call("nothing", "{}"); got.result == nil || len(got.result.Content) != 0 {
		t.Errorf("%+v", got)
	}
	if got := call("blocks", "{}"); got.result == nil || len(got.result.Content) != 2 {
		t.Errorf("%+v", got)
	}
	if got := call("person", `{"name":"Ada"}`); got.json == nil || *got.json != `{"name":"Ada"}` {
		t.Errorf("%+v", got)
	}
	if got := call("person", `{"name":1}`); got.failure == nil || !strings.HasPrefix(got.failure.message, "the arguments do not fit") {
		t.Errorf("%+v", got)
	}
	if got := call("fails", "{}"); got.failure == nil || got.failure.message != "no luck" || got.failure.code != nil {
		t.Errorf("%+v", got.failure)
	}
	if got := call("refuses", "{}"); got.failure == nil || got.failure.message != "no date" || *got.failure.code != codeInvalidParams {
		t.Errorf("%+v", got.failure)
	}
	if got := call("other", "{}"); got.failure == nil || got.failure.message != "unknown tool: other" {
		t.Errorf("%+v", got.failure)
	}
}

func TestMistakesOfThePluginAreNamedWithTheirPlace(t *testing.T) {
	type channel struct {
		Events chan int `json:"events"`
	}
	for want, register := range map[string]func(){
		"the plugin registers nothing": func() {},
		`: the tool "same" is already registered at serve_test.go:`: func() {
			Tool("same", "", func(*Call, struct{}) (string, error) { return "", nil })
			Tool("same", "", func(*Call, struct{}) (string, error) { return "", nil })
		},
		`serve_test.go:87: the tool "wrong": channel.Events: JSON has no chan int`: func() {
			Tool("wrong", "", func(*Call, channel) (string, error) { return "", nil })
		},
		`the tool "list": it returns a []int`: func() {
			Tool("list", "", func(*Call, struct{}) ([]int, error) { return nil, nil })
		},
	} {
		registered(t, register)
		if _, failed := listTools(); failed == nil || !strings.Contains(failed.message, want) {
			t.Errorf("got %+v, want %s", failed, want)
		}
	}
}

func TestPanicsAreFailures(t *testing.T) {
	registered(t, func() {
		Tool("panics", "", func(*Call, struct{}) (string, error) { panic("at the disco") })
	})
	got := callTool("panics", "{}", &Call{})
	if got.failure == nil || got.failure.message != "panic: at the disco" {
		t.Errorf("%+v", got.failure)
	}
}

func TestWhenAToolAsks(t *testing.T) {
	given := map[string]any{"a": 1}
	details := Details{AskBeforeTask: true, More: More{"icons": "i", "_meta": given}}
	want := More{"icons": "i", "_meta": map[string]any{"a": 1, "dev.wharf/ask-before-task": true}}
	if got := details.more(); !reflect.DeepEqual(got, want) || len(given) != 1 {
		t.Errorf("%v %v", got, given)
	}
	if got := (Details{AskBeforeTask: true}).more(); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if got := (Details{}).more(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestQuestionsEndTheCallUntilTheyAreAnswered(t *testing.T) {
	registered(t, func() {
		Tool("ask", "", func(c *Call, _ struct{}) (string, error) {
			c.Keep("kept")
			one, action := Ask[person](c, "who", "Who?")
			if action != Accepted {
				return "nobody", nil
			}
			var kept string
			if !c.Kept(&kept) {
				return "lost", nil
			}
			return one.Name + " " + kept, nil
		})
	})
	first := callTool("ask", "{}", &Call{answers: map[string]Answer{}})
	if first.ask == nil || len(first.ask.questions) != 1 || string(first.ask.state) != `"kept"` {
		t.Fatalf("%+v", first)
	}
	question := first.ask.questions[0]
	want := `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	if question.Key != "who" || question.message != "Who?" || question.text != want {
		t.Errorf("%+v", question)
	}
	for answer, want := range map[string]string{"accepted": "Ada kept", "declined": "nobody", "other": "of another kind"} {
		given := map[string]Answer{
			"accepted": {Action: Accepted, JSON: json.RawMessage(`{"name":"Ada"}`)},
			"declined": {Action: Declined},
			"other":    {Action: Accepted, JSON: json.RawMessage(`1`)},
		}[answer]
		got := callTool("ask", "{}", &Call{answers: map[string]Answer{"who": given}, given: []byte(`"kept"`)})
		if got.text != nil && *got.text == want || got.failure != nil && strings.Contains(got.failure.message, "does not fit") {
			continue
		}
		t.Errorf("%s: %+v", answer, got)
	}
}

func TestAskAllAsksOnlyWhatIsOpen(t *testing.T) {
	call := &Call{answers: map[string]Answer{"a": {Action: Declined}}}
	got := run(func() (any, error) {
		AskAll(call, Roots("a"), URL("b", "Look", "https://example.org"), Sample("c", map[string]int{"maxTokens": 1}))
		return "", nil
	}, toolOutcome)
	if got.ask == nil || len(got.ask.questions) != 2 || got.ask.questions[0].Key != "b" || got.ask.questions[1].text != `{"maxTokens":1}` {
		t.Errorf("%+v", got.ask)
	}
}

func TestTemplatesMatch(t *testing.T) {
	for _, one := range []struct {
		template, uri string
		want          map[string]string
	}{
		{"note:///{day}", "note:///today", map[string]string{"day": "today"}},
		{"note:///{day}", "note:///a/b", nil},
		{"file:///{+path}", "file:///a/b.txt", map[string]string{"path": "a/b.txt"}},
		{"x://{a}/{b}", "x://1/2", map[string]string{"a": "1", "b": "2"}},
		{"x://{a}/c", "x://1/d", nil},
		{"x://fixed", "x://fixed", map[string]string{}},
	} {
		if got, _ := match(one.template, one.uri); !reflect.DeepEqual(got, one.want) {
			t.Errorf("%s %s: %v", one.template, one.uri, got)
		}
	}
}

func TestPromptsHaveArgumentsInOrder(t *testing.T) {
	type arguments struct {
		Topic string `json:"topic" description:"About what."`
		Mood  string `json:"mood,omitempty"`
	}
	type wrong struct {
		Count int `json:"count"`
	}
	registered(t, func() {
		Prompt("poem", "", func(_ *Call, args arguments) (string, error) { return args.Topic, nil })
		Prompt("wrong", "", func(*Call, wrong) (string, error) { return "", nil })
	})
	params, err := plugin.prompts[0].params()
	want := []promptArgument{{"topic", "About what.", true}, {"mood", "", false}}
	if err != nil || !reflect.DeepEqual(params, want) {
		t.Errorf("%v %v", params, err)
	}
	if _, err := plugin.prompts[1].params(); err == nil || !strings.Contains(err.Error(), `its argument "count" must be a string`) {
		t.Error(err)
	}
	if got := getPrompt("poem", map[string]string{"topic": "rain"}, &Call{}); got.text == nil || *got.text != "rain" {
		t.Errorf("%+v", got)
	}
}

func TestURLsAreTakenApart(t *testing.T) {
	for url, want := range map[string]target{
		"http://example.org":             {false, "example.org", "example.org", "/"},
		"HTTPS://example.org:8443/a?b#c": {true, "example.org:8443", "example.org", "/a?b"},
		"http://example.org?q=/":         {false, "example.org", "example.org", "/?q=/"},
		"http://[::1]:80/":               {false, "[::1]:80", "[::1]", "/"},
	} {
		if got, fine := targetOf(url); !fine || got != want {
			t.Errorf("%s: %+v", url, got)
		}
	}
	for _, url := range []string{"ftp://example.org/", "example.org", "http://", "http://:80/", "http://user:word@example.org/"} {
		if _, fine := targetOf(url); fine {
			t.Error(url)
		}
	}
}

func TestSlogGoesToTheHost(t *testing.T) {
	var got []string
	logged = func(level Level, message, data string) { got = append(got, fmt.Sprint(level, " ", message, " ", data)) }
	t.Cleanup(func() { logged = nil })
	logger := slog.New(&LogHandler{})
	logger.Info("plain")
	logger.Warn("with", "a", 1, slog.Group("g", "b", time.Second))
	logger.With("a", 1).WithGroup("g").With("b", 2).Error("nested", "c", errors.New("no"))
	want := []string{
		`1 plain `,
		`3 with {"a":1,"g":{"b":"1s"},"message":"with"}`,
		`4 nested {"a":1,"g":{"b":2,"c":"no"},"message":"nested"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
