package wharf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"wharf/gen/wasi_clocks_monotonic_clock"
	"wharf/gen/wasi_http_outgoing_handler"
	http "wharf/gen/wasi_http_types"
	"wharf/gen/wasi_io_poll"
	"wharf/gen/wasi_io_streams"
	"wharf/gen/wit/runtime"
	wit "wharf/gen/wit/types"
)

// readPiece is the maximum number of bytes per read.
const readPiece = 64 << 10

// send sends a request through wasi:http and waits for the response. WASI requires that child resources, such as pollables, are dropped
// before their parents; deferred calls run in that order.
func send(request Request, to target) (*Response, error) {
	wait := wait{host: to.host, limit: request.Timeout}
	wait.over = wasi_clocks_monotonic_clock.SubscribeDuration(uint64(max(request.Timeout, 0)))
	defer wait.over.Drop()

	outgoing, err := prepare(request, to)
	if err != nil {
		return nil, err
	}
	var body *http.OutgoingBody
	if len(request.Body) > 0 {
		made := outgoing.Body()
		if made.Tag() == wit.ResultErr {
			return nil, errors.New("The request cannot be sent: its body cannot be written.")
		}
		body = made.Ok()
	}
	coming := runtime.Receiving(func() wit.Result[*http.FutureIncomingResponse, http.ErrorCode] {
		return wasi_http_outgoing_handler.Handle(outgoing, wit.None[*http.RequestOptions]())
	})
	if coming.Tag() == wit.ResultErr {
		return nil, wait.failed(coming.Err(), request)
	}
	defer coming.Ok().Drop()
	if body != nil {
		if err := wait.write(body, request); err != nil {
			return nil, err
		}
	}
	for {
		if answer := runtime.Receiving(coming.Ok().Get); answer.Tag() == wit.OptionSome {
			switch taken := answer.Some(); {
			case taken.Tag() == wit.ResultErr:
				return nil, unreachable(to.host, "its answer was already consumed")
			case taken.Ok().Tag() == wit.ResultErr:
				return nil, wait.failed(taken.Ok().Err(), request)
			default:
				return wait.read(taken.Ok().Ok(), request)
			}
		}
		if err := wait.until(coming.Ok().Subscribe()); err != nil {
			return nil, err
		}
	}
}

func prepare(request Request, to target) (*http.OutgoingRequest, error) {
	var headers []wit.Tuple2[string, []byte]
	for _, header := range request.Headers {
		headers = append(headers, wit.Tuple2[string, []byte]{F0: header.Name, F1: []byte(header.Value)})
	}
	if len(request.Body) > 0 {
		headers = append(headers, wit.Tuple2[string, []byte]{F0: "content-length", F1: []byte(strconv.Itoa(len(request.Body)))})
	}
	fields := http.FieldsFromList(headers)
	if fields.Tag() == wit.ResultErr {
		return nil, errors.New("The request cannot be sent: it has a header that may not be set or is malformed.")
	}
	scheme := http.MakeSchemeHttp()
	if to.isSecure {
		scheme = http.MakeSchemeHttps()
	}
	outgoing := http.MakeOutgoingRequest(fields.Ok())
	if outgoing.SetMethod(methodOf(request.Method)).Tag() == wit.ResultErr {
		return nil, fmt.Errorf("The request cannot be sent: %q is not an HTTP method.", request.Method)
	}
	if outgoing.SetScheme(wit.Some(scheme)).Tag() == wit.ResultErr ||
		outgoing.SetAuthority(wit.Some(to.authority)).Tag() == wit.ResultErr ||
		outgoing.SetPathWithQuery(wit.Some(to.path)).Tag() == wit.ResultErr {
		return nil, badURL(request.URL)
	}
	return outgoing, nil
}

func methodOf(name string) http.Method {
	switch strings.ToUpper(name) {
	case "GET":
		return http.MakeMethodGet()
	case "HEAD":
		return http.MakeMethodHead()
	case "POST":
		return http.MakeMethodPost()
	case "PUT":
		return http.MakeMethodPut()
	case "PATCH":
		return http.MakeMethodPatch()
	case "DELETE":
		return http.MakeMethodDelete()
	}
	return http.MakeMethodOther(name)
}

// wait is the deadline of a request, and the host that it waits for.
type wait struct {
	host  string
	limit time.Duration
	over  *wasi_io_poll.Pollable
}

// until waits until a pollable is ready; it fails when the deadline has passed.
func (w *wait) until(ready *wasi_io_poll.Pollable) error {
	defer ready.Drop()
	both := []*wasi_io_poll.Pollable{ready, w.over}
	for _, which := range runtime.Receiving(func() []uint32 { return wasi_io_poll.Poll(both) }) {
		if which == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s did not answer in full within %v seconds.", w.host, w.limit.Seconds())
}

func (w *wait) write(body *http.OutgoingBody, request Request) error {
	opened := body.Write()
	if opened.Tag() == wit.ResultErr {
		return errors.New("The request cannot be sent: its body cannot be written.")
	}
	isWhole, err := w.pieces(opened.Ok(), request.Body)
	opened.Ok().Drop()
	if err != nil || !isWhole {
		// A server that responds before it has read the whole body closes the stream; the response says why.
		body.Drop()
		return err
	}
	finished := runtime.Receiving(func() wit.Result[wit.Unit, http.ErrorCode] {
		return http.OutgoingBodyFinish(body, wit.None[*http.Fields]())
	})
	if finished.Tag() == wit.ResultErr {
		return w.failed(finished.Err(), request)
	}
	return nil
}

// pieces writes a body. It returns false if the server closed the stream before all of it was written.
func (w *wait) pieces(stream *wasi_io_streams.OutputStream, rest []byte) (bool, error) {
	for {
		room := stream.CheckWrite()
		if room.Tag() == wit.ResultErr {
			return false, nil
		}
		piece := rest[:min(uint64(len(rest)), room.Ok())]
		switch {
		case room.Ok() == 0:
			if err := w.until(stream.Subscribe()); err != nil {
				return false, err
			}
		case len(piece) == 0:
			return stream.Flush().Tag() == wit.ResultOk, nil
		case stream.Write(piece).Tag() == wit.ResultErr:
			return false, nil
		}
		rest = rest[len(piece):]
	}
}

func (w *wait) read(incoming *http.IncomingResponse, request Request) (*Response, error) {
	defer incoming.Drop()
	response := &Response{Status: int(incoming.Status())}
	fields := incoming.Headers()
	for _, entry := range runtime.Receiving(fields.Entries) {
		response.Headers = append(response.Headers, Header{Name: strings.ToLower(entry.F0), Value: string(entry.F1)})
	}
	fields.Drop()
	consumed := incoming.Consume()
	if consumed.Tag() == wit.ResultErr {
		return nil, unreachable(w.host, "its answer cannot be read")
	}
	defer consumed.Ok().Drop()
	opened := consumed.Ok().Stream()
	if opened.Tag() == wit.ResultErr {
		return nil, unreachable(w.host, "its answer cannot be read")
	}
	stream := opened.Ok()
	defer stream.Drop()
	for {
		piece := runtime.Receiving(func() wit.Result[[]byte, wasi_io_streams.StreamError] { return stream.Read(readPiece) })
		if piece.Tag() == wit.ResultErr {
			if piece.Err().Tag() == wasi_io_streams.StreamErrorClosed {
				return response, nil
			}
			problem := piece.Err().LastOperationFailed()
			defer problem.Drop()
			code := runtime.Receiving(func() wit.Option[http.ErrorCode] { return http.HttpErrorCode(problem) })
			if code.Tag() == wit.OptionSome {
				return nil, w.failed(code.Some(), request)
			}
			return nil, unreachable(w.host, "the connection broke")
		}
		if len(response.Body)+len(piece.Ok()) > request.MaxBody {
			return nil, fmt.Errorf("The answer of %s is longer than the limit of %d KiB.", w.host, request.MaxBody/1024)
		}
		if len(piece.Ok()) == 0 {
			if err := w.until(stream.Subscribe()); err != nil {
				return nil, err
			}
		}
		response.Body = append(response.Body, piece.Ok()...)
	}
}

func (w *wait) failed(code http.ErrorCode, request Request) error {
	switch code.Tag() {
	case http.ErrorCodeHttpRequestDenied:
		return fmt.Errorf("The operator of this server does not allow this request to %s.", w.host)
	case http.ErrorCodeDestinationIpProhibited:
		return fmt.Errorf("The operator of this server does not allow requests to addresses of a private network, such as that of %s.",
			w.host)
	case http.ErrorCodeHttpRequestUriInvalid:
		return badURL(request.URL)
	case http.ErrorCodeDnsTimeout, http.ErrorCodeConnectionTimeout, http.ErrorCodeConnectionReadTimeout,
		http.ErrorCodeConnectionWriteTimeout, http.ErrorCodeHttpResponseTimeout:
		return unreachable(w.host, "it did not answer in time")
	case http.ErrorCodeDnsError, http.ErrorCodeDestinationNotFound:
		return unreachable(w.host, "there is no host of this name")
	case http.ErrorCodeConnectionRefused, http.ErrorCodeDestinationUnavailable, http.ErrorCodeDestinationIpUnroutable:
		return unreachable(w.host, "it refused the connection")
	case http.ErrorCodeConnectionTerminated, http.ErrorCodeHttpResponseIncomplete:
		return unreachable(w.host, "the connection broke")
	case http.ErrorCodeTlsProtocolError, http.ErrorCodeTlsCertificateError, http.ErrorCodeTlsAlertReceived:
		return unreachable(w.host, "the TLS handshake failed, or its certificate is not trusted")
	case http.ErrorCodeHttpProtocolError:
		return unreachable(w.host, "its answer is not HTTP")
	case http.ErrorCodeConnectionLimitReached, http.ErrorCodeHttpRequestBodySize, http.ErrorCodeHttpResponseBodySize:
		return fmt.Errorf("The request to %s is more than the operator of this server allows one call, in requests or in bytes.", w.host)
	case http.ErrorCodeHttpResponseHeaderSectionSize, http.ErrorCodeHttpResponseHeaderSize:
		return fmt.Errorf("The answer of %s cannot be used: its headers are more, or longer, than this server reads.", w.host)
	case http.ErrorCodeHttpResponseTransferCoding, http.ErrorCodeHttpResponseContentCoding:
		return fmt.Errorf("The answer of %s cannot be used: it is encoded in a way that was not requested.", w.host)
	case http.ErrorCodeConfigurationError:
		return fmt.Errorf("The request cannot be sent: the operator's settings for it are wrong; the server's log says how.")
	case http.ErrorCodeInternalError:
		if problem := code.InternalError(); problem.Tag() == wit.OptionSome {
			return unreachable(w.host, problem.Some())
		}
	}
	return fmt.Errorf("The request to %s is not one that this server can send, or its answer not one that it can read.", w.host)
}
