package wharf

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Request is a request over HTTP, put to the operator's rules, which may add a secret to it that the plugin never sees. Redirects
// are not followed. For code that wants a net/http client, see the package wharf/roundtrip.
type Request struct {
	// Method is GET if it is empty.
	Method string
	// URL begins with http:// or https://.
	URL     string
	Headers []Header
	Body    []byte
	// Timeout is for all of it, until the last byte of the answer is there. 20 seconds if it is 0.
	Timeout time.Duration
	// MaxBody is the most bytes that the body of the answer may have. 4 MiB if it is 0.
	MaxBody int
}

// Header is one header of a request or an answer.
type Header struct {
	Name, Value string
}

// Response is an answer, of any status.
type Response struct {
	Status  int
	Headers []Header
	Body    []byte
}

// Header is the first header of this name, or nothing.
func (r *Response) Header(name string) string {
	for _, header := range r.Headers {
		if strings.EqualFold(header.Name, name) {
			return header.Value
		}
	}
	return ""
}

// JSON reads the body.
func (r *Response) JSON(to any) error { return json.Unmarshal(r.Body, to) }

const (
	// Less than a call may take by default, so that its failure can be told.
	defaultTimeout = 20 * time.Second
	defaultMaxBody = 4 << 20
)

// Fetch sends a request and waits for its answer.
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
	// A password in a URL would end up in logs and in what a model reads.
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
