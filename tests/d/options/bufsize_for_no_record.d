/* SPDX-License-Identifier: Apache-2.0 */
/* A size that cannot hold one record is an error at start. */
/* flags: -q -xbufsize=0 */
/* status: 1 */
/* stderr: could not enable tracing */
BEGIN
{
	self->x[1] = 1;
	@[probename] = count();
	printf("wrong\n");
	exit(0);
}
