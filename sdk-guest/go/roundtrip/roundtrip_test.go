package roundtrip

import (
	"io"
	"net/http"
	"testing"

	"wharf"
)

func TestAnswersBecomeResponses(t *testing.T) {
	answer := &wharf.Response{
		Status:  404,
		Headers: []wharf.Header{{Name: "set-cookie", Value: "a"}, {Name: "set-cookie", Value: "b"}},
		Body:    []byte("gone"),
	}
	response := responseOf(answer, &http.Request{})
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "gone" || response.Status != "404 Not Found" || len(response.Header["Set-Cookie"]) != 2 {
		t.Errorf("%+v %s %v", response, body, err)
	}
}
