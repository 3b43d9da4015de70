//go:build wasip1

// Written by sdk-guest/wit/generate.py. DO NOT EDIT!

package export_wharf_plugin_prompts

import (
	api "wharf/gen/wharf_plugin_prompts"
	wit "wharf/gen/wit/types"
)

var (
	ListPrompts func() wit.Result[[]api.Prompt, api.Failure]
	GetPrompt   func(name string, arguments []wit.Tuple2[string, string], context api.Context) wit.Result[api.PromptOutcome, api.Failure]
)
