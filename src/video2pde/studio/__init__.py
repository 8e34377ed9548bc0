"""The studio: everything the command line does, in a page that this program serves to the same machine.

``app`` puts the parts together, ``guard`` lets nobody else in, ``folder`` keeps every path inside the folder that was
opened. Runs are the ordinary command in processes of their own (``jobs``): the page only watches them.
"""
