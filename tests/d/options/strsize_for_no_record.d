/* SPDX-License-Identifier: Apache-2.0 */
/* A size that cannot hold one record is an error at start. */
/* flags: -q -xstrsize=0 */
/* status: 1 */
/* stderr: failed to set -x strsize: Invalid value for specified option */
BEGIN
{
	self->x[1] = 1;
	@[probename] = count();
	printf("wrong\n");
	exit(0);
}
