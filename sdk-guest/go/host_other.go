//go:build !wasip1

package wharf

import "errors"

// Outside a component there is no host; tests of a plugin's functions run all the same.

// A test that wants to see what is logged sets this.
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
	return nil, errors.New("requests are sent in a component only, by wharf")
}
