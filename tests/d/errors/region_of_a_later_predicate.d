/* SPDX-License-Identifier: Apache-2.0 */
/* The predicate of a clause that follows another one. */
/* flags: -e -n 'BEGIN { exit(0); } END /nosuch/ { exit(0); }' */
/* status: 1 */
/* stderr: { exit(0); }: in predicate: failed to resolve nosuch: Unknown variable name */
BEGIN
{
	exit(0);
}
