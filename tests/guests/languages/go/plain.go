package main

import (
	_ "embed"
	"encoding/json"
	"time"

	"wharf"
)

// Published unchanged: the suite looks for each of its keywords.
//
//go:embed schema.json
var schema string

type Region struct {
	Region string `json:"region" description:"Which region; sent in the header Mcp-Param-Region as well." schema:"{\"x-mcp-header\":\"Region\"}"`
}

// Tools that only answer, log or report progress.
func addPlain() {
	wharf.Tool("test_simple_text", "Answers with one text block.", func(*wharf.Call, None) (string, error) {
		return "This is a simple text response for testing.", nil
	})
	wharf.Tool("test_image_content", "Answers with one image.", func(*wharf.Call, None) (wharf.Content, error) {
		return wharf.Image("image/png", []byte(png)), nil
	})
	wharf.Tool("test_audio_content", "Answers with one piece of audio.", func(*wharf.Call, None) (wharf.Content, error) {
		return wharf.Audio("audio/wav", []byte(wav)), nil
	})
	wharf.Tool("test_embedded_resource", "Answers with one embedded resource.", func(*wharf.Call, None) (wharf.Content, error) {
		return wharf.Embedded(wharf.ResourceContents{
			URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
		}), nil
	})
	wharf.Tool("test_multiple_content_types", "Answers with a text, an image and an embedded resource.", multiple)
	wharf.Tool("test_error_handling", "Always fails, as a tool fails: with a result that says so.", failing)
	wharf.Tool("test_tool_with_logging", "Logs three messages while it runs.", withLogging)
	wharf.Tool("test_tool_with_progress", "Reports progress three times while it runs.", withProgress)
	wharf.Tool("json_schema_2020_12_tool", "Takes arguments whose JSON Schema uses what is new in the draft 2020-12.",
		func(_ *wharf.Call, args json.RawMessage) (string, error) { return "Called with: " + string(args), nil },
		wharf.Details{InputSchema: schema})
	wharf.Tool("test_reconnection",
		"Takes so long that the stream of its answer is closed meanwhile and the client has to come back.", reconnection)
}

func multiple(*wharf.Call, None) ([]wharf.Content, error) {
	return []wharf.Content{
		wharf.Text("Multiple content types test:"),
		wharf.Image("image/png", []byte(png)),
		wharf.Embedded(wharf.ResourceContents{
			URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
		}),
	}, nil
}

// The same as returning an error, written out.
func failing(*wharf.Call, None) (wharf.Result, error) {
	return wharf.Result{
		Content: []wharf.Content{wharf.Text("This tool intentionally returns an error for testing.")}, IsError: true,
	}, nil
}

func withLogging(c *wharf.Call, _ None) (string, error) {
	c.Log(wharf.LevelInfo, "Tool execution started")
	time.Sleep(50 * time.Millisecond)
	c.Log(wharf.LevelInfo, "Tool processing data")
	time.Sleep(50 * time.Millisecond)
	c.Log(wharf.LevelInfo, "Tool execution completed")
	return "Three messages are logged.", nil
}

func withProgress(c *wharf.Call, _ None) (string, error) {
	for _, done := range []float64{0, 50, 100} {
		c.Progress(done, 100, "")
		time.Sleep(50 * time.Millisecond)
	}
	return "The progress is reported.", nil
}

// The operator's poll_after_ms has to be less than this duration, so that the suite sees the stream close.
func reconnection(*wharf.Call, None) (string, error) {
	time.Sleep(900 * time.Millisecond)
	return "The answer that the client came back for.", nil
}
