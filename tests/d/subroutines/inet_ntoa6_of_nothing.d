/* SPDX-License-Identifier: Apache-2.0 */
/* The unspecified address. */
BEGIN
{
	this->p = (uint8_t *)alloca(16);
	printf("%s\n", inet_ntop(10, this->p));
	exit(0);
}
/* output:
::

*/
