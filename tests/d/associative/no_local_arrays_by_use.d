/* SPDX-License-Identifier: Apache-2.0 */
/* this-> has no associative arrays, undeclared ones neither. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ARR_LOCAL] */
BEGIN
{
	this->a["x"] = 1;
	exit(0);
}
