//go:build wasip1

// Written by sdk-guest/wit/generate.py. DO NOT EDIT!

package export_wharf_plugin_tools

import (
	api "wharf/gen/wharf_plugin_tools"
	wit "wharf/gen/wit/types"
)

var (
	ListTools func() wit.Result[[]api.Tool, api.Failure]
	CallTool  func(name, arguments string, context api.Context) wit.Result[api.ToolOutcome, api.Failure]
)
