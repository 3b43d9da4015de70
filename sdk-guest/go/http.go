package wharf

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Request is an HTTP request. It is sent only if the operator's rules allow it; a rule may add a secret that the plugin never sees.
// Redirects are not followed. For code that needs a net/http client, see the package wharf/roundtrip.
type Request struct {
	// Method is GET if it is empty.
	Method string
	// URL begins with http:// or https://.
	URL     string
	Headers []Header
	Body    []byte
	// Timeout is the time limit of the whole request, until the last byte of the response is received. 20 seconds if it is 0.
	Timeout time.Duration
	// MaxBody is the maximum length of the response body in bytes. 4 MiB if it is 0.
	MaxBody int
}

// Header is one header of a request or a response.
type Header struct {
	Name, Value string
}

// Response is an HTTP response, of any status.
type Response struct {
	Status  int
	Headers []Header
	Body    []byte
}

// Header returns the value of the first header of this name, or an empty string.
func (r *Response) Header(name string) string {
	for _, header := range r.Headers {
		if strings.EqualFold(header.Name, name) {
			return header.Value
		}
	}
	return ""
}

// JSON parses the body as JSON.
func (r *Response) JSON(to any) error { return json.Unmarshal(r.Body, to) }

const (
	// Shorter than the default time limit of a call, so that the call can still report the failure.
	defaultTimeout = 20 * time.Second
	defaultMaxBody = 4 << 20
)

// Fetch sends a request and waits for its response.
func Fetch(request Request) (*Response, error) {
	if request.Method == "" {
		request.Method = "GET"
	}
	if request.Timeout == 0 {
		request.Timeout = defaultTimeout
	}
	if request.MaxBody == 0 {
		request.MaxBody = defaultMaxBody
	}
	to, fine := targetOf(request.URL)
	if !fine {
		return nil, badURL(request.URL)
	}
	return send(request, to)
}

type target struct {
	isSecure        bool
	authority, host string
	path            string
}

func targetOf(url string) (target, bool) {
	scheme, rest, found := strings.Cut(url, "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme != "http" && scheme != "https" {
		return target{}, false
	}
	rest, _, _ = strings.Cut(rest, "#")
	authority, path := rest, ""
	if at := strings.IndexAny(rest, "/?"); at >= 0 {
		authority, path = rest[:at], rest[at:]
	}
	host := authority
	if at := strings.LastIndexByte(authority, ':'); at >= 0 && strings.Trim(authority[at+1:], "0123456789") == "" {
		host = authority[:at]
	}
	// A password in a URL would end up in logs and in messages to the model.
	if host == "" || strings.Contains(authority, "@") {
		return target{}, false
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return target{scheme == "https", authority, host, path}, true
}

func badURL(url string) error {
	return fmt.Errorf("%s is not a URL that can be requested: it must begin with http:// or https:// and name a host, and no user or "+
		"password.", url)
}

func unreachable(host, problem string) error {
	return fmt.Errorf("%s cannot be reached: %s.", host, problem)
}
