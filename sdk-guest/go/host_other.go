//go:build !wasip1

package wharf

import "errors"

// Replacements for the host's functions outside of a component, so that native tests of a plugin's functions run.

// logged is set by tests that check log messages.
var logged func(level Level, message, data string)

func hostConfig() string { return "{}" }

func hostDirectories() []Directory { return nil }

func hostListChanged(List) {}

func hostResourceUpdated(string) {}

func hostProgress(float64, float64, string) {}

func hostLog(level Level, message, data string) {
	if logged != nil {
		logged(level, message, data)
	}
}

func send(Request, target) (*Response, error) {
	return nil, errors.New("requests can be sent only in a component that wharf runs")
}
