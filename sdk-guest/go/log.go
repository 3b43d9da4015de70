package wharf

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// Level is a severity of RFC 5424, least severe first.
type Level uint8

const (
	LevelDebug Level = iota
	LevelInfo
	LevelNotice
	LevelWarning
	LevelError
	LevelCritical
	LevelAlert
	LevelEmergency
)

// List is a list whose changes a plugin can announce. The list of resources includes the resource templates.
type List uint8

const (
	ListOfTools List = iota
	ListOfResources
	ListOfPrompts
)

// Directory is a directory that is open to this call: os.ReadFile and similar functions work in it.
type Directory struct {
	Path     string `json:"path"`
	Writable bool   `json:"writable"`
}

// Config reads the plugin's table from the operator's config file into a struct or map, by its json tags.
func Config(to any) error { return decode(hostConfig(), to) }

// Directories returns the directories that are open to this call: absolute paths, spelled as the user knows them.
func Directories() []Directory { return hostDirectories() }

// ListChanged announces that one of the plugin's lists changed.
func ListChanged(which List) { hostListChanged(which) }

// ResourceUpdated announces that a resource of this plugin has new contents.
func ResourceUpdated(uri string) { hostResourceUpdated(uri) }

// Progress reports progress to the client, in any unit; done must grow. A total of 0 means unknown.
func (c *Call) Progress(done, total float64, message string) { hostProgress(done, total, message) }

// Log logs to the operator, and to the client if the log level that it set allows. The package log/slog does the same.
func (c *Call) Log(level Level, message string) { hostLog(level, message, "") }

// LogHandler is a handler of log/slog that logs through the host. In a component it is the default handler.
type LogHandler struct {
	attributes []slog.Attr
	groups     []string
}

func (h *LogHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *LogHandler) Handle(_ context.Context, record slog.Record) error {
	data := map[string]any{}
	into := data
	add := func(attribute slog.Attr) bool {
		if attribute.Key != "" {
			into[attribute.Key] = plain(attribute.Value)
		}
		return true
	}
	for _, attribute := range h.attributes {
		add(attribute)
	}
	for _, group := range h.groups {
		inner, ok := into[group].(map[string]any)
		if !ok {
			inner = map[string]any{}
			into[group] = inner
		}
		into = inner
	}
	record.Attrs(add)
	text := ""
	if len(data) > 0 {
		data["message"] = record.Message
		json, err := json.Marshal(data)
		if err != nil {
			return err
		}
		text = string(json)
	}
	hostLog(levelOf(record.Level), record.Message, text)
	return nil
}

// WithAttrs nests the attributes in the groups that are open now. Attributes from before a group stay outside it.
func (h *LogHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	for at := len(h.groups) - 1; at >= 0; at-- {
		attributes = []slog.Attr{{Key: h.groups[at], Value: slog.GroupValue(attributes...)}}
	}
	return &LogHandler{append(h.attributes[:len(h.attributes):len(h.attributes)], attributes...), h.groups}
}

func (h *LogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &LogHandler{h.attributes, append(h.groups[:len(h.groups):len(h.groups)], name)}
}

func plain(value slog.Value) any {
	value = value.Resolve()
	switch value.Kind() {
	case slog.KindGroup:
		inner := map[string]any{}
		for _, attribute := range value.Group() {
			inner[attribute.Key] = plain(attribute.Value)
		}
		return inner
	case slog.KindDuration:
		return value.Duration().String()
	case slog.KindTime:
		return value.Time().Format(time.RFC3339Nano)
	case slog.KindAny:
		if err, ok := value.Any().(error); ok {
			return err.Error()
		}
	}
	return value.Any()
}

func levelOf(level slog.Level) Level {
	switch {
	case level < slog.LevelInfo:
		return LevelDebug
	case level < slog.LevelWarn:
		return LevelInfo
	case level < slog.LevelError:
		return LevelWarning
	}
	return LevelError
}
