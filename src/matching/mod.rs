//! Which receive a message belongs to: pattern, posted and unexpected queues, short and deep forms.
