//go:build wasip1

// Written by sdk-guest/wit/generate.py. DO NOT EDIT!

package export_wharf_plugin_completions

import (
	api "wharf/gen/wharf_plugin_completions"
	wit "wharf/gen/wit/types"
)

var (
	Complete func(target api.Target, argument, value string, arguments []wit.Tuple2[string, string]) wit.Result[api.Completion, api.Failure]
)
