package main

import (
	"fmt"
	"log/slog"
	"strings"

	"wharf"
)

type Prompt struct {
	Prompt string `json:"prompt" description:"What the model is to answer."`
}

type Message struct {
	Message string `json:"message" description:"What the person reads."`
}

type Account struct {
	Username string `json:"username" description:"The user's name."`
	Email    string `json:"email" description:"The user's email address."`
}

type Review struct {
	Name     string  `json:"name,omitempty" description:"User name" default:"John Doe"`
	Age      int     `json:"age,omitempty" description:"User age" default:"30"`
	Score    float64 `json:"score,omitempty" description:"User score" default:"95.5"`
	Status   string  `json:"status,omitempty" description:"User status" enum:"active,inactive,pending" default:"active"`
	Verified bool    `json:"verified,omitempty" description:"Verification status" default:"true"`
}

type Named struct {
	Name string `json:"name"`
}

// Tools that ask the client. After a question, the tool is called again from its start with the answers; nothing waits in between.
func addAsking() {
	wharf.Tool("test_sampling", "Has the client's model answer a prompt.", func(c *wharf.Call, args Prompt) (string, error) {
		return sampled(c, "reply", args.Prompt, "LLM response: ")
	})
	wharf.Tool("test_elicitation", "Asks the person for a user name and an email address.",
		func(c *wharf.Call, args Message) (string, error) {
			return told(c, wharf.Form[Account]("account", args.Message)), nil
		})
	wharf.Tool("test_elicitation_sep1034_defaults", "Asks the person with a form whose fields have defaults.",
		func(c *wharf.Call, _ None) (string, error) {
			return told(c, wharf.Form[Review]("form", "Please review and update the form fields with defaults")), nil
		})
	wharf.Tool("test_elicitation_sep1330_enums", "Asks the person with a form of every kind of choice.",
		func(c *wharf.Call, _ None) (string, error) {
			return told(c, wharf.FormOf("form", "Please select options from the enum fields", enums)), nil
		})
	wharf.Tool("test_missing_capability", "Cannot be called by a client without sampling.",
		func(*wharf.Call, None) (string, error) { return "The client can sample.", nil },
		wharf.Details{Needs: wharf.CanSample})
	wharf.Tool("test_streaming_elicitation", "Reports progress before it answers, and asks nothing.",
		func(c *wharf.Call, _ None) (string, error) {
			c.Progress(1, 1, "about to answer")
			return "Nothing had to be asked.", nil
		})
	wharf.Tool("test_logging_tool", "Logs one message before it answers.", func(*wharf.Call, None) (string, error) {
		slog.Info("a message for who wants it")
		return "One message is logged.", nil
	})
	wharf.Tool("test_trigger_tool_change", "Announces that the list of tools has changed.",
		func(*wharf.Call, None) (string, error) {
			wharf.ListChanged(wharf.ListOfTools)
			return "The change of the tools is announced.", nil
		})
	wharf.Tool("test_trigger_prompt_change", "Announces that the list of prompts has changed.",
		func(*wharf.Call, None) (string, error) {
			wharf.ListChanged(wharf.ListOfPrompts)
			return "The change of the prompts is announced.", nil
		})
	wharf.Tool("test_x_mcp_header", "Takes an argument that clients repeat in a header.",
		func(_ *wharf.Call, args Region) (string, error) { return "The region is " + args.Region + ".", nil })
	wharf.Tool("test_input_required_result_elicitation", "Asks for a name and greets.", askName)
	wharf.Tool("test_input_required_result_sampling", "Has the client's model name a capital.",
		func(c *wharf.Call, _ None) (string, error) {
			return sampled(c, "capital_question", "What is the capital of France?", "The model says: ")
		})
	wharf.Tool("test_input_required_result_list_roots", "Asks what the client has opened.", listRoots)
	wharf.Tool("test_input_required_result_request_state", "Asks for a confirmation and keeps something meanwhile.", requestState)
	wharf.Tool("test_input_required_result_multiple_inputs", "Asks three things at once.", multipleInputs)
	wharf.Tool("test_input_required_result_multi_round", "Asks twice, one after the other.", multiRound)
	wharf.Tool("test_input_required_result_tampered_state",
		"Asks for a confirmation; what it keeps meanwhile must come back unchanged.", requestState)
	wharf.Tool("test_input_required_result_capabilities", "Asks only what this client can answer.", capabilities)
}

const enums = `{
	"type": "object",
	"properties": {
		"untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
		"titledSingle": { "type": "string", "oneOf": ` + titled + ` },
		"legacyEnum": {
			"type": "string",
			"enum": ["opt1", "opt2", "opt3"],
			"enumNames": ["Option One", "Option Two", "Option Three"]
		},
		"untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
		"titledMulti": { "type": "array", "items": { "anyOf": ` + titled + ` } }
	}
}`

const titled = `[
	{ "const": "value1", "title": "First Option" },
	{ "const": "value2", "title": "Second Option" },
	{ "const": "value3", "title": "Third Option" }
]`

// The parameters of sampling/createMessage for one message of the user.
func userSays(text string) any {
	return map[string]any{
		"messages":  []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": text}}},
		"maxTokens": 100,
	}
}

func sampled(c *wharf.Call, key, prompt, says string) (string, error) {
	reply, err := c.Sample(key, userSays(prompt))
	return says + reply.Text(), err
}

func told(c *wharf.Call, question wharf.Question) string {
	switch answer := wharf.AskAll(c, question)[0]; answer.Action {
	case wharf.Accepted:
		return "Elicitation completed: action=accept, content=" + string(answer.JSON)
	case wharf.Declined:
		return "Elicitation completed: action=decline"
	}
	return "Elicitation completed: action=cancel"
}

func askName(c *wharf.Call, _ None) (string, error) {
	given, action := wharf.Ask[Named](c, "user_name", "What is your name?")
	if action != wharf.Accepted {
		return "Hello, anonymous!", nil
	}
	return "Hello, " + given.Name + "!", nil
}

func listRoots(c *wharf.Call, _ None) (string, error) {
	var uris []string
	for _, root := range c.Roots() {
		uris = append(uris, root.URI)
	}
	return fmt.Sprintf("%d roots: %s", len(uris), strings.Join(uris, " ")), nil
}

func requestState(c *wharf.Call, _ None) (string, error) {
	c.Keep("asked")
	confirmed, action := wharf.Ask[struct {
		OK bool `json:"ok"`
	}](c, "confirm", "Is that all right?")
	var kept string
	state, answer := "state-lost", "not confirmed"
	if c.Kept(&kept) && kept == "asked" {
		state = "state-ok"
	}
	if action == wharf.Accepted && confirmed.OK {
		answer = "confirmed"
	}
	return state + ": " + answer, nil
}

func multipleInputs(c *wharf.Call, _ None) (string, error) {
	c.Keep("asked")
	answers := wharf.AskAll(c,
		wharf.Form[Named]("user_name", "What is your name?"),
		wharf.Sample("greeting", userSays("Write a short greeting.")),
		wharf.Roots("client_roots"))
	return fmt.Sprintf("%d answers arrived.", len(answers)), nil
}

func multiRound(c *wharf.Call, _ None) (string, error) {
	c.Keep("the name is asked")
	given, action := wharf.Ask[Named](c, "step1", "Step 1: what is your name?")
	if action != wharf.Accepted {
		return "There was no name.", nil
	}
	c.Keep("the color is asked")
	chosen, action := wharf.Ask[struct {
		Color string `json:"color"`
	}](c, "step2", "Step 2: what is your favorite color, "+given.Name+"?")
	if action != wharf.Accepted {
		return given.Name + " has no favorite.", nil
	}
	return given.Name + " likes " + chosen.Color + ".", nil
}

func capabilities(c *wharf.Call, _ None) (string, error) {
	var questions []wharf.Question
	if c.Can(wharf.CanSample) {
		questions = append(questions, wharf.Sample("greeting", userSays("Write a short greeting.")))
	}
	if c.Can(wharf.CanForm) {
		questions = append(questions, wharf.Form[Named]("user_name", "What is your name?"))
	}
	if c.Can(wharf.CanRoots) {
		questions = append(questions, wharf.Roots("client_roots"))
	}
	if len(questions) == 0 {
		return "This client can be asked nothing.", nil
	}
	return fmt.Sprintf("%d answers arrived.", len(wharf.AskAll(c, questions...))), nil
}
