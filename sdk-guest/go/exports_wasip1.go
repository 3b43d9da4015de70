package wharf

import (
	"wharf/gen/export_wharf_plugin_completions"
	"wharf/gen/export_wharf_plugin_prompts"
	"wharf/gen/export_wharf_plugin_resources"
	"wharf/gen/export_wharf_plugin_tools"
	"wharf/gen/wharf_plugin_completions"
	"wharf/gen/wharf_plugin_prompts"
	"wharf/gen/wharf_plugin_resources"
	"wharf/gen/wharf_plugin_tools"
	api "wharf/gen/wharf_plugin_types"
	wit_runtime "wharf/gen/wit/runtime"
	wit "wharf/gen/wit/types"
	_ "wharf/gen/wit_exports"
)

// The exports of the component, in the types of the contract.
func init() {
	export_wharf_plugin_tools.ListTools = exportTools
	export_wharf_plugin_tools.CallTool = exportCall
	export_wharf_plugin_resources.ListResources = exportResources
	export_wharf_plugin_resources.ListTemplates = exportTemplates
	export_wharf_plugin_resources.ReadResource = exportRead
	export_wharf_plugin_prompts.ListPrompts = exportPrompts
	export_wharf_plugin_prompts.GetPrompt = exportPrompt
	export_wharf_plugin_completions.Complete = exportComplete
}

func exportTools() wit.Result[[]wharf_plugin_tools.Tool, api.Failure] {
	var failed *failure
	listed := wit_runtime.Collecting(func() (listed []listedTool) {
		listed, failed = listTools()
		return listed
	})
	if failed != nil {
		return wit.Err[[]wharf_plugin_tools.Tool](toFailure(failed))
	}
	tools := make([]wharf_plugin_tools.Tool, 0, len(listed))
	for _, one := range listed {
		tools = append(tools, wharf_plugin_tools.Tool{
			Name: one.name, Description: one.description, InputSchema: one.input, Details: toDetails(one),
		})
	}
	return wit.Ok[[]wharf_plugin_tools.Tool, api.Failure](tools)
}

func toDetails(one listedTool) wit.Option[wharf_plugin_tools.ToolDetails] {
	from := one.details
	details := wharf_plugin_tools.ToolDetails{
		Title: optional(from.Title), OutputSchema: optional(one.output), Needs: api.ClientCapabilities(from.Needs), Task: uint8(from.Task),
		More: toMore(from.more()),
	}
	if from.ReadOnly != Unsaid || from.Destructive != Unsaid || from.Idempotent != Unsaid || from.OpenWorld != Unsaid {
		details.Hints = wit.Some(wharf_plugin_tools.Hints{
			ReadOnly: toHint(from.ReadOnly), Destructive: toHint(from.Destructive), Idempotent: toHint(from.Idempotent),
			OpenWorld: toHint(from.OpenWorld),
		})
	}
	return wit.Some(details)
}

func toHint(hint Hint) wit.Option[bool] {
	if hint == Unsaid {
		return wit.None[bool]()
	}
	return wit.Some(hint == Yes)
}

func toMore(more map[string]any) wit.Option[string] {
	if len(more) == 0 {
		return wit.None[string]()
	}
	return wit.Some(encode(more))
}

func exportCall(name, arguments string, context api.Context) wit.Result[wharf_plugin_tools.ToolOutcome, api.Failure] {
	result := wit_runtime.Collecting(func() outcome { return callTool(name, arguments, newCall(context)) })
	switch {
	case result.failure != nil:
		return wit.Err[wharf_plugin_tools.ToolOutcome](toFailure(result.failure))
	case result.ask != nil:
		return wit.Ok[wharf_plugin_tools.ToolOutcome, api.Failure](wharf_plugin_tools.MakeToolOutcomeAsk(toRound(result.ask)))
	case result.text != nil:
		return wit.Ok[wharf_plugin_tools.ToolOutcome, api.Failure](wharf_plugin_tools.MakeToolOutcomeText(*result.text))
	case result.json != nil:
		return wit.Ok[wharf_plugin_tools.ToolOutcome, api.Failure](wharf_plugin_tools.MakeToolOutcomeStructured(*result.json))
	}
	done := wharf_plugin_tools.ToolResult{IsError: result.result.IsError, More: toMore(result.result.More)}
	if result.result.Structured != nil {
		done.Structured = wit.Some(structured(result.result.Structured))
	}
	for _, block := range result.result.Content {
		done.Content = append(done.Content, toContent(block))
	}
	return wit.Ok[wharf_plugin_tools.ToolOutcome, api.Failure](wharf_plugin_tools.MakeToolOutcomeDone(done))
}

func exportResources() wit.Result[[]wharf_plugin_resources.ResourceEntry, api.Failure] {
	var entries []wharf_plugin_resources.ResourceEntry
	for _, one := range plugin.resources {
		if !one.isTemplate {
			entries = append(entries, wharf_plugin_resources.ResourceEntry{
				Uri: one.uri, Name: one.name, Description: optional(one.description), MimeType: optional(one.mimeType),
				More: toMore(one.more),
			})
		}
	}
	return wit.Ok[[]wharf_plugin_resources.ResourceEntry, api.Failure](entries)
}

func exportTemplates() wit.Result[[]wharf_plugin_resources.ResourceTemplate, api.Failure] {
	var templates []wharf_plugin_resources.ResourceTemplate
	for _, one := range plugin.resources {
		if one.isTemplate {
			templates = append(templates, wharf_plugin_resources.ResourceTemplate{
				UriTemplate: one.uri, Name: one.name, Description: optional(one.description), MimeType: optional(one.mimeType),
				More: toMore(one.more),
			})
		}
	}
	return wit.Ok[[]wharf_plugin_resources.ResourceTemplate, api.Failure](templates)
}

func exportRead(uri string, context api.Context) wit.Result[wharf_plugin_resources.ReadOutcome, api.Failure] {
	result := wit_runtime.Collecting(func() outcome { return readResource(uri, newCall(context)) })
	switch {
	case result.failure != nil:
		return wit.Err[wharf_plugin_resources.ReadOutcome](toFailure(result.failure))
	case result.ask != nil:
		return wit.Ok[wharf_plugin_resources.ReadOutcome, api.Failure](wharf_plugin_resources.MakeReadOutcomeAsk(toRound(result.ask)))
	case result.text != nil:
		return wit.Ok[wharf_plugin_resources.ReadOutcome, api.Failure](wharf_plugin_resources.MakeReadOutcomeText(*result.text))
	}
	var contents []api.ResourceContents
	for _, one := range result.contents {
		contents = append(contents, toResource(one))
	}
	return wit.Ok[wharf_plugin_resources.ReadOutcome, api.Failure](wharf_plugin_resources.MakeReadOutcomeDone(contents))
}

func exportPrompts() wit.Result[[]wharf_plugin_prompts.Prompt, api.Failure] {
	var prompts []wharf_plugin_prompts.Prompt
	for at := range plugin.prompts {
		one := &plugin.prompts[at]
		params, err := one.params()
		if err != nil {
			return wit.Err[[]wharf_plugin_prompts.Prompt](toFailure(failureOf(err)))
		}
		listed := wharf_plugin_prompts.Prompt{Name: one.name, Description: optional(one.description), More: toMore(one.more)}
		for _, param := range params {
			listed.Arguments = append(listed.Arguments, wharf_plugin_prompts.PromptArgument{
				Name: param.name, Description: optional(param.description), Required: param.isRequired,
			})
		}
		prompts = append(prompts, listed)
	}
	return wit.Ok[[]wharf_plugin_prompts.Prompt, api.Failure](prompts)
}

func exportPrompt(
	name string, arguments []wit.Tuple2[string, string], context api.Context,
) wit.Result[wharf_plugin_prompts.PromptOutcome, api.Failure] {
	result := wit_runtime.Collecting(func() outcome { return getPrompt(name, pairs(arguments), newCall(context)) })
	switch {
	case result.failure != nil:
		return wit.Err[wharf_plugin_prompts.PromptOutcome](toFailure(result.failure))
	case result.ask != nil:
		return wit.Ok[wharf_plugin_prompts.PromptOutcome, api.Failure](wharf_plugin_prompts.MakePromptOutcomeAsk(toRound(result.ask)))
	case result.text != nil:
		return wit.Ok[wharf_plugin_prompts.PromptOutcome, api.Failure](wharf_plugin_prompts.MakePromptOutcomeText(*result.text))
	}
	done := wharf_plugin_prompts.PromptResult{
		Description: optional(result.prompt.Description), More: toMore(result.prompt.More),
	}
	for _, message := range result.prompt.Messages {
		done.Messages = append(done.Messages, wharf_plugin_prompts.Message{
			Role: api.Role(message.Role), Content: toContent(message.Content),
		})
	}
	return wit.Ok[wharf_plugin_prompts.PromptOutcome, api.Failure](wharf_plugin_prompts.MakePromptOutcomeDone(done))
}

// maxValues is the maximum number of completions that the host passes on.
const maxValues = 100

func exportComplete(
	target wharf_plugin_completions.Target, argument, value string, arguments []wit.Tuple2[string, string],
) wit.Result[wharf_plugin_completions.Completion, api.Failure] {
	var of Target
	if target.Tag() == wharf_plugin_completions.TargetPrompt {
		of.Prompt = target.Prompt()
	} else {
		of.Template = target.Template()
	}
	var failed *failure
	values := wit_runtime.Collecting(func() (values []string) {
		values, failed = complete(of, argument, value, pairs(arguments))
		return values
	})
	if failed != nil {
		return wit.Err[wharf_plugin_completions.Completion](toFailure(failed))
	}
	total := uint32(len(values))
	values = values[:min(len(values), maxValues)]
	return wit.Ok[wharf_plugin_completions.Completion, api.Failure](wharf_plugin_completions.Completion{
		Values: values, Total: wit.Some(total), HasMore: int(total) > len(values),
	})
}

func newCall(context api.Context) *Call {
	call := &Call{
		answers: map[string]Answer{}, capabilities: Capabilities(context.Capabilities), reports: Reports(context.Reports),
		caller: Caller{ID: textOf(context.Caller), Revision: context.Revision}, more: context.More,
	}
	if context.Client.Tag() == wit.OptionSome {
		client := context.Client.Some()
		call.caller.Client = &Client{Name: client.Name, Version: client.Version, Title: textOf(client.Title)}
	}
	if context.State.Tag() == wit.OptionSome {
		call.given = context.State.Some()
		call.kept = call.given
	}
	for _, pair := range context.Answers {
		call.answers[pair.F0] = fromAnswer(pair.F1)
	}
	return call
}

// textOf returns an empty text for no value.
func textOf(text wit.Option[string]) string {
	if text.Tag() == wit.OptionSome {
		return text.Some()
	}
	return ""
}

func fromAnswer(answer api.Answer) Answer {
	switch answer.Tag() {
	case api.AnswerAccepted:
		return Answer{Action: Accepted, JSON: []byte(answer.Accepted())}
	case api.AnswerDeclined:
		return Answer{Action: Declined}
	case api.AnswerSampled:
		return Answer{Action: sampled, JSON: []byte(answer.Sampled())}
	case api.AnswerRoots:
		roots := []Root{}
		for _, root := range answer.Roots() {
			roots = append(roots, Root{URI: root.Uri, Name: root.Name.Some()})
		}
		return Answer{Action: listed, Roots: roots}
	}
	return Answer{Action: Cancelled}
}

func toRound(from *round) api.Round {
	var to api.Round
	for _, question := range from.questions {
		to.Questions = append(to.Questions, wit.Tuple2[string, api.Question]{F0: question.Key, F1: toQuestion(question)})
	}
	if from.state != nil {
		to.State = wit.Some(from.state)
	}
	return to
}

func toQuestion(from Question) api.Question {
	switch from.kind {
	case urlQuestion:
		return api.MakeQuestionUrl(api.Url{Message: from.message, Url: from.text})
	case sampleQuestion:
		return api.MakeQuestionSampling(from.text)
	case rootsQuestion:
		return api.MakeQuestionRoots()
	}
	return api.MakeQuestionForm(api.Form{Message: from.message, Schema: from.text})
}

func toFailure(from *failure) api.Failure {
	return api.Failure{Kind: toKind(from.code), Message: from.message, Data: optional(from.data)}
}

// toKind returns the kind of failure in the contract for a code. Without a code, the operation itself failed.
func toKind(code *int32) api.FailureKind {
	switch {
	case code == nil:
		return api.MakeFailureKindFailed()
	case *code == codeInvalidParams:
		return api.MakeFailureKindInvalidParams()
	case *code == codeResourceNotFound:
		return api.MakeFailureKindNotFound()
	}
	return api.MakeFailureKindOther(*code)
}

func toContent(from Content) api.Content {
	switch from.kind {
	case imageContent:
		return api.MakeContentImage(api.Media{MimeType: from.media.mimeType, Data: from.media.data})
	case audioContent:
		return api.MakeContentAudio(api.Media{MimeType: from.media.mimeType, Data: from.media.data})
	case linkContent:
		return api.MakeContentLink(api.ResourceLink{
			Uri: from.link.URI, Name: from.link.Name, MimeType: optional(from.link.MIMEType), More: toMore(from.link.More),
		})
	case embeddedContent:
		return api.MakeContentEmbedded(toResource(from.resource))
	case rawContent:
		return api.MakeContentRaw(from.text)
	}
	return api.MakeContentText(from.text)
}

func toResource(from ResourceContents) api.ResourceContents {
	body := api.MakeBodyText(from.Text)
	if from.Bytes != nil {
		body = api.MakeBodyBytes(from.Bytes)
	}
	return api.ResourceContents{Uri: from.URI, MimeType: optional(from.MIMEType), Body: body, More: toMore(from.More)}
}

func pairs(all []wit.Tuple2[string, string]) map[string]string {
	values := map[string]string{}
	for _, pair := range all {
		values[pair.F0] = pair.F1
	}
	return values
}
