//go:build wasip1

// Package types has the generic types that the generated bindings use.
package types

const (
	OptionNone = 0
	OptionSome = 1

	ResultOk  = 0
	ResultErr = 1
)

// Unit is the value type of a result without a value.
type Unit struct{}

// Tuple2 is a pair.
type Tuple2[A, B any] struct {
	F0 A
	F1 B
}

// Option is an optional value.
type Option[T any] struct {
	value T
	some  bool
}

func Some[T any](value T) Option[T] { return Option[T]{value, true} }

func None[T any]() Option[T] { return Option[T]{} }

func (o Option[T]) Tag() uint8 {
	if o.some {
		return OptionSome
	}
	return OptionNone
}

// Some returns the value, or the zero value if it is absent.
func (o Option[T]) Some() T { return o.value }

// Result is the value of a success or of a failure.
type Result[T, E any] struct {
	ok     T
	err    E
	failed bool
}

func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{ok: value} }

func Err[T, E any](value E) Result[T, E] { return Result[T, E]{err: value, failed: true} }

func (r Result[T, E]) Tag() uint8 {
	if r.failed {
		return ResultErr
	}
	return ResultOk
}

func (r Result[T, E]) Ok() T { return r.ok }

func (r Result[T, E]) Err() E { return r.err }
