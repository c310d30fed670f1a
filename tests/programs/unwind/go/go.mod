module unwind

go 1.18
