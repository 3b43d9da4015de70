//go:build wasip1

// Written by sdk-guest/wit/generate.py. DO NOT EDIT!

package export_wharf_plugin_resources

import (
	api "wharf/gen/wharf_plugin_resources"
	wit "wharf/gen/wit/types"
)

var (
	ListResources func() wit.Result[[]api.ResourceEntry, api.Failure]
	ListTemplates func() wit.Result[[]api.ResourceTemplate, api.Failure]
	ReadResource  func(uri string, context api.Context) wit.Result[api.ReadOutcome, api.Failure]
)
