"""Contact forces of the last physics step, as kernels read them."""

import warp as wp

__all__ = ["ContactRows", "net_contact_force"]

_FRICTION = wp.types.vector(length=5, dtype=float)


@wp.struct
class ContactRows:
    """Where a solver keeps the constraint rows of its contacts.

    A row belongs to a contact between two geoms and acts along a direction of its frame. The rows of a contact follow
    one another.
    """

    num_rows: wp.array[int]
    """Constraint rows of each environment, those that found no place included, shape (num_envs,)."""
    row_kind: wp.array2d[int]
    """Kind of each row, shape (num_envs, max_rows)."""
    row_contact: wp.array2d[int]
    """Contact of each row of a contact, shape (num_envs, max_rows)."""
    row_force: wp.array2d[float]
    """Force along each row [N], shape (num_envs, max_rows)."""
    dimension: wp.array[int]
    """Dimension of each contact, 1, 3, 4 or 6, shape (max_contacts,): its number of rows, or in a friction pyramid half
    of them and 1."""
    geoms: wp.array[wp.vec2i]
    """The two geoms of each contact, shape (max_contacts,). Its force pushes the second away from the first."""
    frame: wp.array[wp.mat33]
    """Normal and two tangents of each contact, in rows, shape (max_contacts,)."""
    friction: wp.array[_FRICTION]
    """Coefficients of friction of each contact, the two of sliding first, shape (max_contacts,)."""
    body_of_geom: wp.array[int]
    """Body of each geom in the body arrays of an environment, -1 for the ground, shape (num_geoms,)."""
    first_kind: int
    """Least kind of a row that belongs to a contact."""
    pyramidal_kind: int
    """Kind of the rows of a friction pyramid, whose edges come in pairs along normal plus and minus tangent."""


@wp.func
def _contact_force(contacts: ContactRows, env: int, contact: int, kind: int, first_row: int, num_rows: int):
    """Return the force of a contact on its second geom, world frame [N]."""
    frame = contacts.frame[contact]
    force = wp.vec3()
    for index in range(num_rows):
        direction = wp.vec3()
        if kind == contacts.pyramidal_kind:
            direction = frame[0]
            tangent = index / 2
            if tangent < 2:
                slope = contacts.friction[contact][tangent]
                if index % 2 == 1:
                    slope = -slope
                direction = direction + slope * frame[tangent + 1]
        elif index < 3:
            direction = frame[index]
        force = force + contacts.row_force[env, first_row + index] * direction
    return force


@wp.func
def net_contact_force(contacts: ContactRows, env: int, body: int):
    """Return the sum of all contact forces on a body in the last physics step, world frame [N]."""
    total = wp.vec3()
    rows = wp.min(contacts.num_rows[env], contacts.row_force.shape[1])
    row = wp.int32(0)
    while row < rows:
        kind = contacts.row_kind[env, row]
        length = wp.int32(1)
        if kind >= contacts.first_kind:
            contact = contacts.row_contact[env, row]
            geoms = contacts.geoms[contact]
            length = contacts.dimension[contact]
            if kind == contacts.pyramidal_kind:
                length = 2 * (length - 1)
            length = wp.clamp(length, 1, rows - row)
            sign = float(0.0)
            if geoms[0] >= 0 and contacts.body_of_geom[geoms[0]] == body:
                sign = sign - 1.0
            if geoms[1] >= 0 and contacts.body_of_geom[geoms[1]] == body:
                sign = sign + 1.0
            if sign != 0.0:
                total = total + sign * _contact_force(contacts, env, contact, kind, row, length)
        row = row + length
    return total
