module conformance

go 1.24

require wharf v0.0.0

replace wharf => ./../../../../sdk-guest/go
