"""The field's own interfaces over the gateway: each one thin, none with a record of its own."""
