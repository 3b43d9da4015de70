module wharf

go 1.24
