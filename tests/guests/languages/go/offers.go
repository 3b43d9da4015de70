package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"wharf"
)

// The resources that the suite reads. It reads the first one without checking its kind, so that is a plain text.
func addResources() {
	wharf.Resource("test://static-text", "static-text", "A text that stays as it is.", "text/plain",
		func(*wharf.Call) (string, error) { return "This is the content of the static text resource.", nil })
	wharf.Resource("test://static-binary", "static-binary", "A picture that stays as it is.", "image/png",
		func(*wharf.Call) ([]byte, error) { return []byte(png), nil })
	wharf.Resource("test://watched-resource", "watched-resource",
		"A text to subscribe to. It never changes: no scenario waits for that.", "text/plain",
		func(*wharf.Call) (string, error) { return "Watched resource content", nil })
	wharf.Template("test://template/{id}/data", "template-data", "Data by its id.", "application/json",
		func(_ *wharf.Call, variables map[string]string) (string, error) {
			text, err := json.Marshal(map[string]any{
				"id": variables["id"], "templateTest": true, "data": "Data for ID: " + variables["id"],
			})
			return string(text), err
		})
}

type Two struct {
	Arg1 string `json:"arg1" description:"The first argument."`
	Arg2 string `json:"arg2" description:"The second argument."`
}

type Resource struct {
	URI string `json:"resourceUri" description:"The URI of the resource."`
}

// The prompts, one of which asks a question first, and the completion of a prompt's arguments.
func addPrompts() {
	wharf.Prompt("test_simple_prompt", "A prompt without arguments.", func(*wharf.Call, None) (string, error) {
		return "This is a simple prompt for testing.", nil
	})
	wharf.Prompt("test_prompt_with_arguments", "A prompt with two arguments.", func(_ *wharf.Call, args Two) (string, error) {
		return fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args.Arg1, args.Arg2), nil
	})
	wharf.Prompt("test_prompt_with_embedded_resource", "A prompt that carries a resource.",
		func(_ *wharf.Call, args Resource) ([]wharf.Message, error) {
			return []wharf.Message{
				{Content: wharf.Embedded(wharf.ResourceContents{
					URI: args.URI, MIMEType: "text/plain", Text: "Embedded resource content for testing.",
				})},
				{Content: wharf.Text("Please process the embedded resource above.")},
			}, nil
		})
	wharf.Prompt("test_prompt_with_image", "A prompt that carries a picture.",
		func(*wharf.Call, None) ([]wharf.Message, error) {
			return []wharf.Message{
				{Content: wharf.Image("image/png", []byte(png))}, {Content: wharf.Text("Please analyze the image above.")},
			}, nil
		})
	wharf.Prompt("test_input_required_result_prompt", "A prompt that asks for the context first.", askingPrompt)
	wharf.Complete(wharf.Target{Prompt: "test_prompt_with_arguments"}, "arg1", completeArg1)
}

func askingPrompt(c *wharf.Call, _ None) (string, error) {
	given, action := wharf.Ask[struct {
		Context string `json:"context"`
	}](c, "user_context", "What is the context?")
	if action != wharf.Accepted {
		return "Answer.", nil
	}
	return "Answer with this in mind: " + given.Context, nil
}

func completeArg1(value string, _ map[string]string) ([]string, error) {
	var values []string
	for _, known := range []string{"test1", "test2", "other"} {
		if strings.HasPrefix(known, value) {
			values = append(values, known)
		}
	}
	return values, nil
}
