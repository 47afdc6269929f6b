//! Groups, communicators, context ids, attributes, info, error handlers.
