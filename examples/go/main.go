// The smallest good plugin: one tool.
package main

import "wharf"

type Greet struct {
	Name string `json:"name" description:"Whom to greet."`
}

func init() {
	wharf.Tool("greet", "Greets a person.", greet)
}

func greet(c *wharf.Call, args Greet) (string, error) {
	return "Hello, " + args.Name + "!", nil
}

func main() {} // stays empty: tools are registered in init
