"""What runs inside of the component: the event loop, the replaced modules, and the server behind wharf's contract."""
