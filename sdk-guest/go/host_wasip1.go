package wharf

import (
	"log/slog"

	"wharf/gen/wharf_plugin_announcements"
	"wharf/gen/wharf_plugin_environment"
	"wharf/gen/wharf_plugin_logging"
	"wharf/gen/wharf_plugin_progress"
	wit_runtime "wharf/gen/wit/runtime"
	wit "wharf/gen/wit/types"
)

func init() { slog.SetDefault(slog.New(&LogHandler{})) }

func hostConfig() string { return wit_runtime.Receiving(wharf_plugin_environment.Config) }

func hostDirectories() []Directory {
	directories := []Directory{}
	for _, one := range wit_runtime.Receiving(wharf_plugin_environment.Directories) {
		directories = append(directories, Directory(one))
	}
	return directories
}

func hostListChanged(which List) { wharf_plugin_announcements.ListChanged(uint8(which)) }

func hostResourceUpdated(uri string) { wharf_plugin_announcements.ResourceUpdated(uri) }

func hostProgress(done, total float64, message string) {
	known := wit.None[float64]()
	if total != 0 {
		known = wit.Some(total)
	}
	wharf_plugin_progress.Report(done, known, optional(message))
}

func hostLog(level Level, message, data string) {
	wharf_plugin_logging.Log(uint8(level), message, optional(data))
}

// optional returns no value for an empty text.
func optional(text string) wit.Option[string] {
	if text == "" {
		return wit.None[string]()
	}
	return wit.Some(text)
}
