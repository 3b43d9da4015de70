package main

import (
	"errors"
	"fmt"
	"time"

	"wharf"
)

type Person struct {
	Name string `json:"name" description:"Whom to greet."`
}

type Compute struct {
	Seconds float64 `json:"seconds" description:"How long it takes."`
	Label   string  `json:"label,omitempty" description:"What to call the result."`
}

type File struct {
	Filename string `json:"filename" description:"Which file would go."`
}

type Confirm struct {
	Confirm bool `json:"confirm" description:"Whether to delete it."`
}

// Tools that a client can run in the background, and one that it cannot.
func addTasks() {
	wharf.Tool("greet", "Greets by name.", func(_ *wharf.Call, person Person) (string, error) {
		return "Hello, " + person.Name + "!", nil
	})
	wharf.Tool("slow_compute", "Computes for as many seconds as asked.", slowCompute, wharf.Details{Task: wharf.TaskOptional})
	// A failure of the tool itself is for the model to read: the task completes, with a result that says so.
	wharf.Tool("failing_job", "Fails after a second, as a tool fails.", func(*wharf.Call, None) (string, error) {
		time.Sleep(time.Second)
		return "", errors.New("The job did not work out.")
	}, wharf.Details{Task: wharf.TaskRequired})
	// An invalid request is a protocol error: the task fails.
	wharf.Tool("protocol_error_job", "Fails with an error of the protocol.", func(*wharf.Call, None) (string, error) {
		return "", &wharf.Error{Code: -32603, Message: "The job cannot run."}
	}, wharf.Details{Task: wharf.TaskOptional})
	wharf.Tool("confirm_delete", "Asks before it would delete a file; deletes nothing.", confirmDelete,
		wharf.Details{Task: wharf.TaskOptional, Destructive: wharf.No})
	wharf.Tool("multi_input", "Asks two things at once while it runs.", multiInput, wharf.Details{Task: wharf.TaskOptional})
	wharf.Tool("test_tool_with_task", "Asks for a name, and greets in the background once it has it.", askName,
		wharf.Details{Task: wharf.TaskRequired, AskBeforeTask: true})
}

func slowCompute(_ *wharf.Call, args Compute) (string, error) {
	if args.Seconds < 0 || args.Seconds > 3600 {
		return "", wharf.InvalidParams("`seconds`: from 0 to 3600")
	}
	time.Sleep(time.Duration(args.Seconds * float64(time.Second)))
	if args.Label == "" {
		args.Label = "it"
	}
	return fmt.Sprintf("Computed %s in %v seconds.", args.Label, args.Seconds), nil
}

func confirmDelete(c *wharf.Call, file File) (string, error) {
	answer, action := wharf.Ask[Confirm](c, "confirm", "Delete "+file.Filename+"?")
	if action == wharf.Accepted && answer.Confirm {
		return "Deleted " + file.Filename + ".", nil
	}
	return "Kept " + file.Filename + ".", nil
}

func multiInput(c *wharf.Call, _ None) (string, error) {
	given := 0
	for _, answer := range wharf.AskAll(c,
		wharf.Form[Named]("first", "The first name?"), wharf.Form[Named]("second", "The second name?")) {
		if answer.Action == wharf.Accepted {
			given++
		}
	}
	return fmt.Sprintf("%d names were given.", given), nil
}
