// Package roundtrip lets code that needs a net/http client send its requests through wharf. It is a separate package, because net/http
// makes a component larger by megabytes; wharf.Fetch does not need it.
package roundtrip

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"wharf"
)

// Client is a client that sends its requests through wharf.
var Client = &http.Client{Transport: Transport{}}

// Transport is the http.RoundTripper that sends through wharf. Bodies are held in memory, up to the limits of wharf.Fetch.
type Transport struct{}

// set has the headers that wharf sets itself.
var set = map[string]bool{"Content-Length": true, "Host": true, "Connection": true, "Transfer-Encoding": true}

func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := wharf.Request{Method: request.Method, URL: request.URL.String()}
	if request.Body != nil {
		defer request.Body.Close()
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		sent.Body = body
	}
	if deadline, has := request.Context().Deadline(); has {
		sent.Timeout = max(time.Until(deadline), time.Nanosecond)
	}
	for name, values := range request.Header {
		for _, value := range values {
			if !set[name] {
				sent.Headers = append(sent.Headers, wharf.Header{Name: name, Value: value})
			}
		}
	}
	answer, err := wharf.Fetch(sent)
	if err != nil {
		return nil, err
	}
	return responseOf(answer, request), nil
}

func responseOf(answer *wharf.Response, request *http.Request) *http.Response {
	response := &http.Response{
		Status:     strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status),
		StatusCode: answer.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)), Request: request,
	}
	for _, header := range answer.Headers {
		response.Header.Add(header.Name, header.Value)
	}
	return response
}
